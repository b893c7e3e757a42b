import { LabIcon } from '@jupyterlab/ui-components';

/** Three waves of a lake under a duck's head; drawn in JupyterLab's icon colour. */
const MARK = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 24 24" width="16">
<g class="jp-icon3" fill="#616161">
<path d="M10.2 3.2a3.6 3.6 0 0 1 3.5 2.9l3 .6c.5.1.6.7.2 1l-2.9 1.6c-.2.9-.7 1.6-1.4 2.2h3.1c1.6 0 3-.8 3.8-2 .3-.4.9-.3 1 .2.3 2.2-.5 4-2 5.2H6.3a4.4 4.4 0 0 1-1-4.8c.3-.7 1-1.2 1.7-1.6a3.6 3.6 0 0 1 3.2-5.3zm.7 2.3a.8.8 0 1 0 0 1.6.8.8 0 0 0 0-1.6z"/>
<path d="M2 16.2c1.7 0 1.7 1 3.3 1s1.7-1 3.4-1c1.6 0 1.6 1 3.3 1s1.7-1 3.3-1c1.7 0 1.7 1 3.4 1 1.6 0 1.6-1 3.3-1v1.6c-1.7 0-1.7 1-3.3 1-1.7 0-1.7-1-3.4-1-1.6 0-1.6 1-3.3 1s-1.7-1-3.3-1c-1.7 0-1.7 1-3.4 1-1.6 0-1.6-1-3.3-1z"/>
<path d="M2 19.6c1.7 0 1.7 1 3.3 1s1.7-1 3.4-1c1.6 0 1.6 1 3.3 1s1.7-1 3.3-1c1.7 0 1.7 1 3.4 1 1.6 0 1.6-1 3.3-1v1.6c-1.7 0-1.7 1-3.3 1-1.7 0-1.7-1-3.4-1-1.6 0-1.6 1-3.3 1s-1.7-1-3.3-1c-1.7 0-1.7 1-3.4 1-1.6 0-1.6-1-3.3-1z"/>
</g></svg>`;

/** The mark in its own colours, for the launcher's card. */
export const CARD = `data:image/svg+xml,${encodeURIComponent(
  MARK.replace('class="jp-icon3" fill="#616161"', 'fill="#1f8fb8"').replace(
    '<path d="M10.2',
    '<path fill="#f2a900" d="M10.2'
  )
)}`;

export const duckLakeIcon = new LabIcon({ name: 'jupyterlab-ducklake:mark', svgstr: MARK });

const stroke = (name: string, body: string) =>
  new LabIcon({
    name: `jupyterlab-ducklake:${name}`,
    svgstr: `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16" width="14"><g fill="none" stroke="currentColor" stroke-width="1.3" stroke-linecap="round" stroke-linejoin="round">${body}</g></svg>`
  });

/** Icons of the tree's rows, drawn in the row's text colour. */
export const rowIcons: { [kind: string]: LabIcon } = {
  lake: stroke(
    'lake',
    '<ellipse cx="8" cy="3.6" rx="5.2" ry="2"/><path d="M2.8 3.6v8.8c0 1.1 2.3 2 5.2 2s5.2-.9 5.2-2V3.6M2.8 8c0 1.1 2.3 2 5.2 2s5.2-.9 5.2-2"/>'
  ),
  schema: stroke('schema', '<path d="M1.8 12.6V3.4h4.4l1.5 1.8h6.5v7.4z"/>'),
  table: stroke('table', '<path d="M2 3h12v10H2zM2 6.3h12M2 9.6h12M6.4 6.3V13"/>'),
  view: stroke(
    'view',
    '<path d="M1.5 8S4 3.8 8 3.8 14.5 8 14.5 8 12 12.2 8 12.2 1.5 8 1.5 8z"/><circle cx="8" cy="8" r="1.9"/>'
  ),
  macro: stroke('macro', '<path d="M10.6 2.6c-2.4-.6-2.9 1-3.2 3L6.3 11c-.4 2-1 3-2.9 2.4M4.6 6.6h5.2"/>'),
  group: stroke('group', '<path d="M3 4.5h10M3 8h10M3 11.5h10"/>'),
  file: stroke('file', '<path d="M3.8 1.8h5.4l3 3v9.4H3.8zM9.2 1.8v3h3"/>'),
  recent: stroke('recent', '<circle cx="8" cy="8" r="5.8"/><path d="M8 4.6V8l2.4 1.6"/>'),
  connection: stroke(
    'connection',
    '<path d="M6.4 9.6l3.2-3.2M7 4.7l1.5-1.5a3 3 0 0 1 4.3 4.3L11.3 9M9 11.3l-1.5 1.5a3 3 0 0 1-4.3-4.3L4.7 7"/>'
  )
};
