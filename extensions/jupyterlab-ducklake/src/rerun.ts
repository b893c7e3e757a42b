/** Running cells again: which of them the user lets run, and those below a variable that has changed. */

import { Dialog, Notification, showDialog } from '@jupyterlab/apputils';
import { Cell, CodeCell } from '@jupyterlab/cells';
import { TranslationBundle } from '@jupyterlab/translation';

import { isOneMagic } from './moved';
import { IChangedCells } from './protocol';

/** A cell that may be run again. */
export interface IAgain {
  cell: CodeCell;
  /** It may also have changed something; nobody runs it but the user. */
  wrote: boolean;
}

/** A cell that read another value of variables than they have now. */
export interface IChanged extends IAgain {
  variables: string[];
}

/** The cells that may run: asks before it allows more than magics that read. Null where the user cancels. */
export async function allowed(
  cells: readonly IAgain[],
  title: (count: number) => string,
  trans: TranslationBundle
): Promise<CodeCell[] | null> {
  const others = cells.filter(({ wrote }) => !wrote).map(({ cell }) => cell);
  const magics = others.filter(isOneMagic);
  const [writes, python] = [cells.length - others.length, others.length - magics.length];
  const left = writes
    ? trans._n('%1 cell writes too and is left out.', '%1 cells write too and are left out.', writes)
    : '';
  if (!python) {
    if (left) {
      Notification.info(trans.__('DuckLake: %1', left), { autoClose: 8000 });
    }
    return magics;
  }
  const body = trans._n(
    '%1 cell holds Python, which runs as a whole.',
    '%1 cells hold Python, which runs as a whole.',
    python
  );
  const all = Dialog.okButton({ label: trans.__('Run %1', others.length) });
  const some = Dialog.createButton({ label: trans.__('Run %1 Without Python', magics.length) });
  const { button } = await showDialog({
    title: title(others.length),
    body: `${body} ${left}`.trim(),
    buttons: [Dialog.cancelButton(), ...(magics.length ? [some] : []), all],
    defaultButton: magics.length ? 1 : 0
  });
  return !button.accept ? null : button.label === all.label ? others : magics;
}

/** The cells that ran and read variables which a cell above has changed since, from the top. */
export function changedAbove(cells: readonly Cell[], changed: IChangedCells): IChanged[] {
  const places = new Map(cells.map((cell, place) => [cell.model.id, place]));
  return cells.flatMap((cell, place) => {
    const known = changed[cell.model.id];
    if (!known || !(cell instanceof CodeCell) || cell.model.executionCount === null) {
      return [];
    }
    const variables = Object.entries(known.variables)
      .filter(([, by]) => (places.get(by) ?? Infinity) < place)
      .map(([name]) => name);
    return variables.length ? [{ cell, wrote: known.wrote, variables }] : [];
  });
}

/** The cells of SQL that another kernel ran: this one does not know the values that they read. */
export function unfollowed(cells: readonly Cell[], followed: ReadonlySet<string>): CodeCell[] {
  return cells.filter(
    (cell): cell is CodeCell =>
      cell instanceof CodeCell &&
      cell.model.executionCount !== null &&
      !followed.has(cell.model.id) &&
      /^\s*%%ducklake(?![\w-])/.test(cell.model.sharedModel.getSource())
  );
}

/**
 * Runs cells below changed variables, from the top.
 *
 * A cell may change another variable, whose readers run in their turn if they hold nothing but a magic that reads.
 */
export async function runBelow(
  chosen: readonly CodeCell[],
  changed: () => Promise<IChanged[]>,
  run: (cell: CodeCell) => Promise<boolean>,
  placeOf: (cell: CodeCell) => number
): Promise<void> {
  let last = -1;
  for (;;) {
    const next = (await changed()).find(
      ({ cell, wrote }) => placeOf(cell) > last && !wrote && (chosen.includes(cell) || isOneMagic(cell))
    );
    if (!next) {
      return;
    }
    last = placeOf(next.cell);
    if (!(await run(next.cell))) {
      return;
    }
  }
}
