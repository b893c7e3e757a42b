import type { Model, MountedState } from './model';

/**
 * Change the HTML of the outputs that hold a view's static form, in a notebook of JupyterLab.
 *
 * The protocol reaches outputs by a name that a page forgets when it is loaded again, and results have none.
 */
export function rewrite<State extends MountedState>(model: Model<State>, change: (html: string) => string): void {
  const mark = `id="${model.get('mount')}"`;
  for (const cell of model.widget_manager?.context?.model?.cells ?? []) {
    for (let at = 0; at < (cell.outputs?.length ?? 0); at++) {
      const output = cell.outputs!.get(at).toJSON();
      const html = [output.data?.['text/html'] ?? []].flat().join('');
      const changed = html.includes(mark) ? change(html) : html;
      if (changed !== html) cell.outputs!.set(at, { ...output, data: { ...output.data, 'text/html': changed } });
    }
  }
}
