/** The editor of a cell, as JupyterLab's elements carry it. */
interface Editor {
  state: { doc: { length: number } };
  dispatch(change: { changes: { from: number; to: number; insert: string } }): void;
  focus(): void;
}

interface EditorElement extends Element {
  cmTile?: { view?: Editor };
  cmView?: { view?: Editor };
}

/** Write code into the cell below a node, if that is an empty code cell; return whether it is. */
export function writeIntoNextCell(node: Element, code: string): boolean {
  const next = node.closest('.jp-Cell')?.nextElementSibling;
  const content = next?.classList.contains('jp-CodeCell') ? next.querySelector<EditorElement>('.cm-content') : null;
  const editor = content?.cmTile?.view ?? content?.cmView?.view;
  if (!editor || editor.state.doc.length) return false;
  editor.dispatch({ changes: { from: 0, to: 0, insert: code } });
  editor.focus();
  return true;
}
