// Builds the widgets' modules and style sheets into the Python package, or into the folder that is named.

import { copyFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = path.dirname(fileURLToPath(import.meta.url));
const output = path.resolve(process.argv[2] ?? path.join(here, '../../ducklake_lab/widgets/static'));
const widgets = ['diff', 'files', 'preview', 'schema', 'snapshots', 'stream', 'table'];

await build({
  absWorkingDir: here,
  entryPoints: Object.fromEntries(widgets.map(name => [name, `src/${name}/${name}.ts`])),
  outdir: output,
  bundle: true,
  format: 'esm',
  target: 'es2022',
  charset: 'utf8',
  // a kernel sends the module with each view
  minify: true,
  legalComments: 'none',
  logLevel: 'warning'
});
await copyFile(path.join(here, 'node_modules/@uwdata/flechette/LICENSE'), path.join(output, 'flechette-LICENSE.txt'));
