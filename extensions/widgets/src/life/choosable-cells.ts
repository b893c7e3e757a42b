import './choosable.css';

const STEPS: Record<string, [number, number]> = {
  ArrowDown: [1, 0],
  ArrowUp: [-1, 0],
  ArrowRight: [0, 1],
  ArrowLeft: [0, -1]
};

/**
 * Let cells of a static table be chosen, by a click or by the arrow keys and Enter.
 *
 * @param choose - takes the place of a cell among the rows below the heads, and among all cells of its row.
 * @returns what undoes it.
 */
export function choosable(table: HTMLTableElement, choose: (row: number, cell: number) => void): () => void {
  const rows = () => [...(table.tBodies[0]?.rows ?? [])];
  let current = table.tBodies[0]?.rows[0]?.cells[1];
  const stand = (cell: HTMLTableCellElement) => {
    current?.removeAttribute('tabindex');
    current = cell;
    cell.tabIndex = 0;
  };
  const cellOf = (event: Event) => {
    const cell = event.target instanceof Element ? event.target.closest('td') : null;
    return cell && table.tBodies[0]?.contains(cell) ? cell : null;
  };
  const pick = (cell: HTMLTableCellElement) => choose(rows().indexOf(cell.parentElement as never), cell.cellIndex);
  const click = (event: Event) => {
    const cell = cellOf(event);
    if (!cell) return;
    stand(cell);
    cell.focus({ preventScroll: true });
    pick(cell);
  };
  const key = (event: KeyboardEvent) => {
    const cell = cellOf(event);
    if (!cell || event.target !== cell) return;
    if (event.key === 'Enter') pick(cell);
    else if (event.key in STEPS) {
      const [down, right] = STEPS[event.key];
      const all = rows();
      const next = all[all.indexOf(cell.parentElement as never) + down]?.cells[cell.cellIndex + right];
      if (!next) return;
      stand(next);
      next.focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  };
  table.classList.add('dlk-pv-choosable');
  if (current) stand(current);
  table.addEventListener('click', click);
  table.addEventListener('keydown', key);
  return () => {
    table.classList.remove('dlk-pv-choosable');
    current?.removeAttribute('tabindex');
    table.removeEventListener('click', click);
    table.removeEventListener('keydown', key);
  };
}
