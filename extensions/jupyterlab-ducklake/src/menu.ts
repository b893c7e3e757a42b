/** The context menu of the sidebar's rows; `schema/sidebar.json` says where each command stands. */

import { JupyterFrontEnd } from '@jupyterlab/application';
import { Clipboard, Notification } from '@jupyterlab/apputils';
import { TranslationBundle } from '@jupyterlab/translation';

import { ACTIONS, Cells, IAction, IPlaced } from './actions';
import { insertCell } from './cells';
import { CommandIDs } from './commands';
import { Links } from './links';
import { RecentLakes } from './recent';
import { IRow } from './rows';
import { Sidebar } from './sidebar';

/** Milliseconds before the user hears that the kernel is busy. */
const PATIENCE = 1500;

export function addMenu(
  app: JupyterFrontEnd,
  panel: Sidebar,
  links: Links,
  recent: RecentLakes,
  trans: TranslationBundle
): void {
  const { commands } = app;
  const nodeHere = () => app.contextMenuHitTest(element => element.classList.contains('jp-DuckLake-row'));
  const rowHere = () => panel.row(nodeHere());

  for (const action of ACTIONS) {
    commands.addCommand(action.id, {
      label: trans.__(action.label),
      isEnabled: () => isPossible(action, rowHere(), links),
      isVisible: () => !action.adopts || !!rowHere()?.lake?.session,
      execute: () => {
        const row = rowHere();
        return isPlaced(row) ? act(action, row, links, trans) : undefined;
      }
    });
  }
  commands.addCommand(CommandIDs.copy, {
    label: trans.__('Copy Name'),
    execute: () => Clipboard.copyToSystem(rowHere()?.insert ?? '')
  });
  commands.addCommand(CommandIDs.copySnapshot, {
    label: trans.__('Copy Id'),
    execute: () => Clipboard.copyToSystem(`${rowHere()?.snapshot ?? ''}`)
  });
  commands.addCommand(CommandIDs.forget, {
    label: trans.__('Forget'),
    execute: () => recent.forget(rowHere()?.uri ?? '')
  });
  // The keyboard goes on where it was; a command that writes into a cell takes it from there.
  app.contextMenu.menu.aboutToClose.connect(() => nodeHere()?.focus());
}

function isPlaced(row: IRow | null): row is IPlaced {
  return !!row?.lake;
}

function isPossible(action: IAction, row: IRow | null, links: Links): boolean {
  const link = links.current;
  if (!isPlaced(row) || !link || !links.notebook) {
    return false;
  }
  if (!action.adopts === !!row.lake.session || (action.writes && row.lake.read_only)) {
    return false;
  }
  return !!action.asks || action.cells(row, link) !== undefined;
}

async function act(action: IAction, row: IPlaced, links: Links, trans: TranslationBundle): Promise<void> {
  const panel = links.notebook;
  const link = links.current;
  if (!panel || !link) {
    return;
  }
  let cells: Cells | undefined;
  const told = window.setTimeout(
    () => Notification.info(trans.__('DuckLake: the kernel answers when its cell is done.'), { autoClose: 4000 }),
    PATIENCE
  );
  try {
    cells = await action.cells(row, link);
  } catch (error) {
    Notification.error(trans.__('DuckLake: %1', (error as Error).message));
    return;
  } finally {
    window.clearTimeout(told);
  }
  if (typeof cells === 'string') {
    Notification.info(trans.__('DuckLake: %1', cells), { autoClose: 8000 });
    return;
  }
  for (const cell of cells ?? []) {
    await insertCell(panel, cell);
  }
}
