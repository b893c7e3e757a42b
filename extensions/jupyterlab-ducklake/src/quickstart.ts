/** The quickstart: a notebook that needs nothing but a kernel with ducklake-lab. */

import { JupyterFrontEnd } from '@jupyterlab/application';
import { PathExt } from '@jupyterlab/coreutils';

import notebook from './quickstart.json';

const FILE = 'ducklake-quickstart.ipynb';

/** Open the quickstart in a folder, written there if it is not there yet. */
export async function openQuickstart(app: JupyterFrontEnd, folder: string): Promise<unknown> {
  const { contents } = app.serviceManager;
  const path = PathExt.join(folder, FILE);
  const listing = await contents.get(folder, { content: true });
  const there = (listing.content as { path: string }[]).some(item => PathExt.basename(item.path) === FILE);
  if (!there) {
    await contents.save(path, { type: 'notebook', format: 'json', content: notebook });
  }
  return app.commands.execute('docmanager:open', { path, factory: 'Notebook' });
}
