import { type ArrowStream, known } from '../../arrow/arrow-stream';
import type { Point } from './chart-answer';

/** Read the points of a chart. */
export function readPoints(stream: ArrowStream): Point[] {
  const texts = (name: string) => stream.texts(name);
  const numbers = (name: string) => stream.numbers(name);
  const label = texts('label');
  const until = texts('until');
  const series = texts('series');
  const value = texts('value');
  const valueUntil = texts('value_until');
  const rows = known(numbers('rows'));
  const place = numbers('place');
  const x = known(numbers('x'));
  const xEnd = numbers('x_end');
  const y = known(numbers('y'));
  const yEnd = numbers('y_end');
  const color = numbers('color');
  return label.map((text, at) => ({
    label: text,
    until: until[at],
    series: series[at],
    value: value[at],
    value_until: valueUntil[at],
    rows: rows[at],
    place: place[at],
    x: x[at],
    x_end: xEnd[at],
    y: y[at],
    y_end: yEnd[at],
    color: color[at]
  }));
}
