// Builds the widgets' modules and style sheets, and the script of the page of `ducklake-lab open`, into the Python package,
// or into the folders that are named.

import { copyFile } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

const here = path.dirname(fileURLToPath(import.meta.url));
const output = path.resolve(process.argv[2] ?? path.join(here, '../../ducklake_lab/widgets/static'));
const page = path.resolve(process.argv[3] ?? path.join(here, '../../ducklake_lab/web/static'));
const widgets = [
  'agents',
  'conflicts',
  'diff',
  'files',
  'preview',
  'review',
  'schema',
  'snapshots',
  'stream',
  'table',
  'when'
];

const options = {
  absWorkingDir: here,
  bundle: true,
  format: 'esm',
  target: 'es2022',
  charset: 'utf8',
  // a kernel sends the module with each view
  minify: true,
  legalComments: 'none',
  logLevel: 'warning'
};
await build({
  ...options,
  entryPoints: Object.fromEntries(widgets.map(name => [name, `src/${name}/${name}.ts`])),
  outdir: output
});
await build({ ...options, entryPoints: { page: 'src/page/page.ts' }, outdir: page });
await copyFile(path.join(here, 'node_modules/@uwdata/flechette/LICENSE'), path.join(output, 'flechette-LICENSE.txt'));
