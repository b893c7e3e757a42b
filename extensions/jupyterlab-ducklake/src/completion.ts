/**
 * Completion in SQL: the kernel's completer knows the lakes, so it is asked as for Python. Here it is only
 * distinguished from other sources, and asked without Tab after a dot.
 */

import { CodeCell } from '@jupyterlab/cells';
import { NotebookPanel } from '@jupyterlab/notebook';
import { CommandRegistry } from '@lumino/commands';
import { EditorView } from '@codemirror/view';
import { Extension } from '@codemirror/state';

import { isSqlAt } from './language';

/** Opens the completer when a dot has been typed after a name in SQL. */
export function completeAfterDot(
  commands: CommandRegistry,
  current: () => NotebookPanel | null,
  enabled: () => boolean
): Extension {
  return EditorView.updateListener.of(update => {
    if (!update.docChanged || !enabled() || !update.transactions.some(tr => tr.isUserEvent('input.type'))) {
      return;
    }
    const head = update.state.selection.main.head;
    const source = update.state.doc.toString();
    if (!/[\w"]\.$/.test(source.slice(Math.max(0, head - 2), head)) || !isSqlAt(source, head)) {
      return;
    }
    const cell = current()?.content.activeCell;
    if (cell instanceof CodeCell && cell.editor?.hasFocus()) {
      // after this update, when the cell's model has the dot too
      window.setTimeout(() => void commands.execute('completer:invoke-notebook'), 0);
    }
  });
}
