/** DuckLake in JupyterLab: the sidebar, SQL in cells, the status bar's item, and the quickstart. */

import { ILabShell, ILayoutRestorer, JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette } from '@jupyterlab/apputils';
import { EditorExtensionRegistry, IEditorExtensionRegistry, IEditorLanguageRegistry } from '@jupyterlab/codemirror';
import { IDefaultFileBrowser } from '@jupyterlab/filebrowser';
import { ILauncher } from '@jupyterlab/launcher';
import { INotebookTracker, NotebookPanel } from '@jupyterlab/notebook';
import { ISettingRegistry } from '@jupyterlab/settingregistry';
import { IStateDB } from '@jupyterlab/statedb';
import { IStatusBar } from '@jupyterlab/statusbar';
import { ITranslator, nullTranslator } from '@jupyterlab/translation';
import { addIcon, refreshIcon } from '@jupyterlab/ui-components';
import { Token } from '@lumino/coreutils';

import { insertCell } from './cells';
import { CommandIDs } from './commands';
import { completeAfterDot } from './completion';
import { CARD, duckLakeIcon } from './icons';
import { followCells, lineExtension, register } from './language';
import { Links } from './links';
import { Marks } from './marks';
import { addMenu } from './menu';
import { addPinned } from './pin';
import { openQuickstart } from './quickstart';
import { RecentLakes } from './recent';
import { Sidebar } from './sidebar';
import { LakeStatus } from './status';

const NAME = 'jupyterlab-ducklake';
const CATEGORY = 'DuckLake';

/** The kernels' lakes, for the plugins here. */
interface ILakes {
  links: Links;
  show: () => void;
}
const ILakes = new Token<ILakes>(`${NAME}:ILakes`, 'The lakes of the notebooks that are open.');

const sidebar: JupyterFrontEndPlugin<ILakes> = {
  id: `${NAME}:sidebar`,
  description: 'The lakes of the notebook in front, in the left sidebar.',
  autoStart: true,
  requires: [INotebookTracker],
  optional: [ILabShell, ILayoutRestorer, ICommandPalette, ISettingRegistry, IStateDB, ITranslator],
  provides: ILakes,
  activate: (
    app: JupyterFrontEnd,
    notebooks: INotebookTracker,
    shell: ILabShell | null,
    restorer: ILayoutRestorer | null,
    palette: ICommandPalette | null,
    settings: ISettingRegistry | null,
    state: IStateDB | null,
    translator: ITranslator | null
  ): ILakes => {
    const trans = (translator ?? nullTranslator).load(NAME);
    const { commands } = app;
    const links = new Links(notebooks);
    const recent = new RecentLakes(state);
    links.changed.connect(() => links.current && recent.note(links.current, links.current.lakes));
    const panel = new Sidebar(links, recent, commands, trans);
    const show = () => {
      app.shell.activateById(panel.id);
      panel.activate();
    };
    commands.addCommand(CommandIDs.show, {
      label: trans.__('Show the DuckLake Sidebar'),
      caption: trans.__('Show the lakes of this notebook'),
      icon: duckLakeIcon,
      execute: show
    });
    commands.addCommand(CommandIDs.refresh, {
      label: args => (args.toolbar ? '' : trans.__('Refresh Lakes')),
      caption: trans.__('Read the lakes again'),
      icon: refreshIcon,
      isEnabled: () => links.current !== null,
      execute: () => links.current?.refresh(true)
    });
    commands.addCommand(CommandIDs.newCell, {
      label: trans.__('New %%ducklake Cell'),
      caption: trans.__('Insert a cell for SQL'),
      icon: addIcon,
      isEnabled: () => links.notebook !== null,
      execute: () => links.notebook && insertCell(links.notebook, { text: '%%ducklake\n' })
    });
    addMenu(app, panel, links, recent, trans);
    for (const command of [CommandIDs.show, CommandIDs.newCell, CommandIDs.refresh]) {
      palette?.addItem({ command, category: CATEGORY });
    }

    if (shell) {
      shell.add(panel, 'left', { rank: 350, type: 'DuckLake' });
    } else {
      app.shell.add(panel, 'left', { rank: 350 });
    }
    restorer?.add(panel, panel.id);

    void settings?.load(sidebar.id).then(loaded => {
      const apply = () => {
        panel.settings = {
          qualified: loaded.composite.qualifiedNames === true,
          snapshots: Number(loaded.composite.snapshots ?? 50)
        };
      };
      loaded.changed.connect(apply);
      apply();
    });
    return { links, show };
  }
};

const sql: JupyterFrontEndPlugin<void> = {
  id: `${NAME}:sql`,
  description: 'SQL in %%ducklake cells and %ducklake lines: colours, comments, completion.',
  autoStart: true,
  requires: [INotebookTracker, IEditorLanguageRegistry, IEditorExtensionRegistry],
  optional: [ISettingRegistry],
  activate: (
    app: JupyterFrontEnd,
    notebooks: INotebookTracker,
    languages: IEditorLanguageRegistry,
    extensions: IEditorExtensionRegistry,
    settings: ISettingRegistry | null
  ) => {
    let highlight = true;
    let afterDot = true;
    const settle = new Set<() => void>();
    register(languages);
    extensions.addExtension({
      name: 'ducklake',
      factory: () =>
        EditorExtensionRegistry.createImmutableExtension([
          lineExtension,
          completeAfterDot(
            app.commands,
            () => notebooks.currentWidget,
            () => afterDot
          )
        ])
    });
    const follow = (panel: NonNullable<typeof notebooks.currentWidget>) => {
      const all = followCells(panel, () => highlight);
      settle.add(all);
      panel.disposed.connect(() => settle.delete(all));
    };
    notebooks.forEach(follow);
    notebooks.widgetAdded.connect((_, panel) => follow(panel));
    void settings?.load(sql.id).then(loaded => {
      const apply = () => {
        highlight = loaded.composite.highlight !== false;
        afterDot = loaded.composite.completeAfterDot !== false;
        settle.forEach(all => all());
      };
      loaded.changed.connect(apply);
      apply();
    });
  }
};

const outputs: JupyterFrontEndPlugin<void> = {
  id: `${NAME}:outputs`,
  description: 'Marks of outputs whose tables have moved on, and of notebooks that read an older snapshot.',
  autoStart: true,
  requires: [ILakes, INotebookTracker],
  optional: [ISettingRegistry, ICommandPalette, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    lakes: ILakes,
    notebooks: INotebookTracker,
    settings: ISettingRegistry | null,
    palette: ICommandPalette | null,
    translator: ITranslator | null
  ) => {
    const trans = (translator ?? nullTranslator).load(NAME);
    const all = new Map<NotebookPanel, Marks>();
    let isOn = true;
    const follow = (panel: NotebookPanel) => {
      const link = lakes.links.of(panel);
      if (!link || all.has(panel)) {
        return;
      }
      addPinned(panel, link, lakes.show, trans);
      const marks = new Marks(panel, link, trans);
      marks.isOn = isOn;
      all.set(panel, marks);
      panel.disposed.connect(() => all.delete(panel));
    };
    notebooks.forEach(follow);
    notebooks.widgetAdded.connect((_, panel) => follow(panel));
    notebooks.currentChanged.connect(() => all.forEach(marks => marks.listen()));
    const current = () => (notebooks.currentWidget ? all.get(notebooks.currentWidget) : undefined);
    app.commands.addCommand(CommandIDs.runStale, {
      label: trans.__('Run All Stale Cells'),
      caption: trans.__('Run the cells whose tables have moved on since'),
      isEnabled: () => !!current()?.stale.length,
      execute: () => current()?.runStale()
    });
    app.commands.addCommand(CommandIDs.runChanged, {
      label: trans.__('Run Those Below a Changed Variable'),
      caption: trans.__('Run the cells of SQL that read variables which have changed above them since'),
      isEnabled: () => !!current()?.changed.length || !!current()?.unfollowed.length,
      execute: () => current()?.runChanged()
    });
    palette?.addItem({ command: CommandIDs.runStale, category: CATEGORY });
    palette?.addItem({ command: CommandIDs.runChanged, category: CATEGORY });
    void settings?.load(outputs.id).then(loaded => {
      const apply = () => {
        isOn = loaded.composite.marks !== false;
        all.forEach(marks => (marks.isOn = isOn));
      };
      loaded.changed.connect(apply);
      apply();
    });
  }
};

const status: JupyterFrontEndPlugin<void> = {
  id: `${NAME}:status`,
  description: 'Lake and snapshot of the notebook in front, in the status bar.',
  autoStart: true,
  requires: [ILakes, IStatusBar],
  optional: [ITranslator],
  activate: (app: JupyterFrontEnd, lakes: ILakes, bar: IStatusBar, translator: ITranslator | null) => {
    const trans = (translator ?? nullTranslator).load(NAME);
    bar.registerStatusItem(status.id, {
      item: new LakeStatus(lakes.links, lakes.show, trans),
      align: 'left',
      rank: 50,
      isActive: () => !!lakes.links.current?.current,
      activeStateChanged: lakes.links.changed as any
    });
  }
};

const quickstart: JupyterFrontEndPlugin<void> = {
  id: `${NAME}:quickstart`,
  description: 'A card in the launcher that opens the quickstart notebook.',
  autoStart: true,
  optional: [ILauncher, IDefaultFileBrowser, ICommandPalette, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    launcher: ILauncher | null,
    browser: IDefaultFileBrowser | null,
    palette: ICommandPalette | null,
    translator: ITranslator | null
  ) => {
    const trans = (translator ?? nullTranslator).load(NAME);
    app.commands.addCommand(CommandIDs.quickstart, {
      label: args => (args.isLauncher ? trans.__('DuckLake Quickstart') : trans.__('Open the DuckLake Quickstart')),
      caption: trans.__('A notebook that makes a lake, changes it and looks at what changed'),
      icon: duckLakeIcon,
      execute: args => openQuickstart(app, String(args.cwd ?? browser?.model.path ?? ''))
    });
    launcher?.add({
      command: CommandIDs.quickstart,
      category: 'Notebook',
      rank: 50,
      kernelIconUrl: CARD,
      args: { isLauncher: true }
    });
    palette?.addItem({ command: CommandIDs.quickstart, category: CATEGORY });
  }
};

export default [sidebar, sql, outputs, status, quickstart];
