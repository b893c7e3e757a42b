/** Putting text into the notebook in front. */

import { CodeCell } from '@jupyterlab/cells';
import { NotebookActions, NotebookPanel } from '@jupyterlab/notebook';

/** Insert at the cursor of the active code cell, or into a new one where there is none. */
export function insertText(panel: NotebookPanel, text: string): void {
  const notebook = panel.content;
  if (!(notebook.activeCell instanceof CodeCell) || notebook.activeCell.readOnly) {
    NotebookActions.insertBelow(notebook);
    NotebookActions.changeCellType(notebook, 'code');
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

/** Insert lines into a cell of their own: the active one where it is empty, else a new one below. */
export function insertCell(panel: NotebookPanel, text: string): void {
  const notebook = panel.content;
  const active = notebook.activeCell;
  if (!(active instanceof CodeCell) || active.readOnly || active.model.sharedModel.getSource().trim()) {
    NotebookActions.insertBelow(notebook);
    NotebookActions.changeCellType(notebook, 'code');
  }
  const cell = notebook.activeCell;
  cell?.model.sharedModel.setSource(text);
  const editor = cell?.editor;
  if (editor) {
    editor.setCursorPosition(editor.getPositionAt(text.length) ?? { line: 0, column: 0 });
    notebook.mode = 'edit';
    editor.focus();
  }
}
