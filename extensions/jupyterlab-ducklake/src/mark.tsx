/** The line below a cell's outputs: which tables have moved on since, and what to do about it. */

import { ReactWidget } from '@jupyterlab/apputils';
import * as React from 'react';

/** A button of the line. */
export interface IMarkButton {
  label: string;
  title: string;
  act: () => void;
}

/** What the line says; `moved` for tables that have moved on, else it only names snapshots. */
export interface IMark {
  moved: boolean;
  text: string;
  title: string;
  buttons: IMarkButton[];
}

export class MarkLine extends ReactWidget {
  constructor() {
    super();
    this.addClass('jp-DuckLake-mark');
  }

  get mark(): IMark | null {
    return this._mark;
  }

  say(mark: IMark): void {
    this._mark = mark;
    this.toggleClass('jp-mod-moved', mark.moved);
    this.update();
  }

  protected render(): JSX.Element | null {
    const mark = this._mark;
    if (!mark) {
      return null;
    }
    return (
      <>
        <span role="status" title={mark.title || undefined}>
          {mark.text}
        </span>
        {mark.buttons.map(({ label, title, act }) => (
          <button key={label} title={title} onClick={act}>
            {label}
          </button>
        ))}
      </>
    );
  }

  private _mark: IMark | null = null;
}
