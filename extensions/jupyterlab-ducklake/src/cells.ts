/** Putting text into the notebook in front. */

import { CodeCell } from '@jupyterlab/cells';
import { Notebook, NotebookActions, NotebookPanel } from '@jupyterlab/notebook';

/** A cell to insert. */
export interface ICell {
  text: string;
  /** Run it at once; only for what reads. */
  run?: boolean;
  /** The part that is selected, to be overwritten: its first offset, and the one after its end. */
  select?: [number, number];
}

/** Insert at the cursor of the active code cell, or into a new one where there is none. */
export function insertText(panel: NotebookPanel, text: string): void {
  const notebook = panel.content;
  if (!(notebook.activeCell instanceof CodeCell) || notebook.activeCell.readOnly) {
    addCell(notebook);
  }
  const editor = notebook.activeCell?.editor;
  if (!editor?.replaceSelection) {
    return;
  }
  const cursor = editor.getOffsetAt(editor.getSelection().start);
  const before = editor.model.sharedModel.getSource().charAt(cursor - 1);
  editor.replaceSelection(/[\w"')]/.test(before) ? ` ${text}` : text);
  notebook.mode = 'edit';
  editor.focus();
}

/** Insert a cell: the active one where it is empty, else a new one below. */
export async function insertCell(panel: NotebookPanel, given: ICell): Promise<void> {
  const notebook = panel.content;
  const active = notebook.activeCell;
  if (!(active instanceof CodeCell) || active.readOnly || active.model.sharedModel.getSource().trim()) {
    addCell(notebook);
  }
  const cell = notebook.activeCell;
  cell?.model.sharedModel.setSource(given.text);
  if (given.run) {
    void NotebookActions.run(notebook, panel.sessionContext);
    return;
  }
  // out of view there is no editor yet
  await notebook.scrollToItem(notebook.activeCellIndex);
  await cell?.ready;
  const editor = cell?.editor;
  if (editor && notebook.activeCell === cell) {
    const [start, end] = (given.select ?? [given.text.length, given.text.length]).map(
      offset => editor.getPositionAt(offset) ?? { line: 0, column: 0 }
    );
    editor.setSelection({ start, end });
    notebook.mode = 'edit';
    editor.focus();
  }
}

function addCell(notebook: Notebook): void {
  NotebookActions.insertBelow(notebook);
  NotebookActions.changeCellType(notebook, 'code');
}
