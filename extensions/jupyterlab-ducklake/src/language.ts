/**
 * SQL in cells: `%%ducklake` cells have a language of their own, `%ducklake` lines are coloured in Python cells.
 */

import { SQLDialect } from '@codemirror/lang-sql';
import { Language, LanguageSupport, defineLanguageFacet, languageDataProp } from '@codemirror/language';
import { Extension, Prec, RangeSetBuilder } from '@codemirror/state';
import { Decoration, DecorationSet, EditorView, ViewPlugin, ViewUpdate } from '@codemirror/view';
import { CodeCell } from '@jupyterlab/cells';
import { IEditorLanguageRegistry, jupyterHighlightStyle } from '@jupyterlab/codemirror';
import { NotebookPanel } from '@jupyterlab/notebook';
import { Input, NodeSet, NodeType, Parser, PartialParse, Tree, TreeFragment, parseMixed } from '@lezer/common';
import { highlightTree, styleTags, tags } from '@lezer/highlight';

export const MIME_TYPE = 'text/x-ducklake';

/** A cell of SQL: `%%ducklake` at its start. */
const CELL = /^\s*%%ducklake(?![\w-])[^\n]*/;
/** A line of SQL or a subcommand: `%ducklake` at its start. */
const LINE = /^\s*%ducklake(?![\w-])/;
/** The options after the magic, and the variable that the result goes to. */
const OPTIONS =
  /^(?:\s+(?:--[A-Za-z][\w-]*(?:[= ](?:"[^"]*"|'[^']*'|(?!--)[^\s"'<]+(?!\s*=?\s*<<)))?|-h\b|-o\s+\w+))*(?:\s+[^\W\d]\w*\s*=?\s*<<(?!<))?/;

const KEYWORDS =
  'add all alter analyze and anti any as asc asof at attach author begin between both by call cascade case cast ' +
  'check checkpoint collate column columns comment commit conflict copy create cross cube current data database ' +
  'deallocate default delete desc describe detach distinct do drop else end escape except exclude execute exists ' +
  'explain export extension fetch filter first following for foreign from full function glob group grouping having if ' +
  'ilike import in include index inner insert install intersect into is isnull join key lambda last lateral left like ' +
  'limit load macro map matched materialized merge metadata natural no not nothing notnull nulls of offset on only or ' +
  'order outer over overwrite parallel partition partitioned pivot placing positional pragma preceding prepare primary ' +
  'qualify range read_only recursive references rename replace reset respect restrict returning right rollback rollup ' +
  'row rows sample schema select semi sequence set sets show similar some sorted start struct summarize table ' +
  'tablesample temp temporary then ties to transaction trim truncate try_cast unbounded union unique unnest unpivot ' +
  'update use using vacuum values version view when where window with within without work';
const TYPES =
  'hugeint uhugeint tinyint utinyint usmallint uinteger ubigint bigint integer int smallint double float real decimal ' +
  'numeric varchar text string blob boolean bool date time timetz timestamp timestamptz timestamp_s timestamp_ms ' +
  'timestamp_ns interval uuid json struct map list variant geometry';

/** DuckDB's SQL, as near as an editor needs it. */
export const DuckDB = SQLDialect.define({
  keywords: `${KEYWORDS} true false null`,
  types: TYPES,
  doubleDollarQuotedStrings: true,
  operatorChars: '+-*/<>=~!@#%^&|`?:',
  specialVar: '$'
});

const sqlParser = DuckDB.language.parser;

const enum Node {
  Document = 1,
  Magic,
  Options,
  Body
}

const data = defineLanguageFacet({ commentTokens: { line: '--', block: { open: '/*', close: '*/' } } });

const nodes = new NodeSet([
  NodeType.none,
  NodeType.define({ id: Node.Document, name: 'Document', top: true, props: [[languageDataProp, data]] }),
  NodeType.define({ id: Node.Magic, name: 'Magic' }),
  NodeType.define({ id: Node.Options, name: 'Options' }),
  NodeType.define({ id: Node.Body, name: 'Body' })
]).extend(styleTags({ Magic: tags.meta, Options: tags.attributeName }));

/** Where a cell's magic, its options and its SQL end, as offsets. */
export function divide(text: string): { magic: number; options: number } {
  const line = CELL.exec(text)?.[0] ?? '';
  const magic = line ? line.indexOf('%%ducklake') + '%%ducklake'.length : 0;
  const options = magic + (OPTIONS.exec(line.slice(magic))?.[0].length ?? 0);
  return { magic, options };
}

/** Divides a cell into the magic, its options and SQL; the SQL is left to the parser of SQL. */
class CellParser extends Parser {
  createParse(input: Input, fragments: readonly TreeFragment[], ranges: readonly { from: number; to: number }[]) {
    const whole = input.read(0, input.length);
    const { magic, options } = divide(whole);
    const parse: PartialParse = {
      parsedPos: 0,
      stoppedAt: null,
      stopAt: () => undefined,
      advance: () => {
        const children: Tree[] = [];
        const positions: number[] = [];
        const add = (node: Node, from: number, to: number) => {
          if (to > from) {
            children.push(new Tree(nodes.types[node], [], [], to - from));
            positions.push(from);
          }
        };
        add(Node.Magic, 0, magic);
        add(Node.Options, magic, options);
        add(Node.Body, options, whole.length);
        return new Tree(nodes.types[Node.Document], children, positions, whole.length);
      }
    };
    return mixed(parse, input, fragments, ranges);
  }
}

const mixed = parseMixed(node => (node.name === 'Body' ? { parser: sqlParser } : null));

export const language = new Language(data, new CellParser(), [], 'ducklake');

/** Colours what is SQL in `%ducklake` lines of other cells. */
const lines = ViewPlugin.fromClass(
  class {
    decorations: DecorationSet;

    constructor(view: EditorView) {
      this.decorations = decorate(view);
    }

    update(update: ViewUpdate) {
      if (update.docChanged || update.viewportChanged) {
        this.decorations = decorate(update.view);
      }
    }
  },
  { decorations: plugin => plugin.decorations }
);

const plain = Decoration.mark({ class: 'jp-DuckLake-sql' });
const [magicMark, commandMark, optionMark, stringMark] = [tags.meta, tags.keyword, tags.attributeName, tags.string].map(
  tag => Decoration.mark({ class: jupyterHighlightStyle.style([tag]) ?? '' })
);

/** First words of SQL, which distinguish a statement from a subcommand; `use` is both. */
const STATEMENT =
  /^\s*(?:\(|--|\/\*|(?:abort|alter|analyze|attach|begin|call|checkpoint|comment|commit|copy|create|deallocate|delete|desc|describe|detach|drop|end|execute|explain|from|insert|load|merge|pivot|pragma|prepare|reset|rollback|select|set|show|start|summarize|table|truncate|unpivot|update|vacuum|values|with)\b)/i;
const COMMAND_PART = /^\s*[\w-]+|--?[A-Za-z][\w-]*|"[^"]*"|'[^']*'/g;

function decorate(view: EditorView): DecorationSet {
  const builder = new RangeSetBuilder<Decoration>();
  if (CELL.test(view.state.sliceDoc(0, 200))) {
    return builder.finish();
  }
  for (const { from, to } of view.visibleRanges) {
    for (let at = from; at <= to;) {
      const line = view.state.doc.lineAt(at);
      const magic = LINE.exec(line.text)?.[0];
      if (magic) {
        const start = line.from + magic.length;
        builder.add(start - '%ducklake'.length, start, magicMark);
        if (line.to > start) {
          // Python's colours of the rest are covered first.
          builder.add(start, line.to, plain);
          decorateRest(builder, start, line.text.slice(magic.length));
        }
      }
      at = line.to + 1;
    }
  }
  return builder.finish();
}

/** Colours what follows `%ducklake`: options and SQL, or a subcommand with its arguments. */
function decorateRest(builder: RangeSetBuilder<Decoration>, start: number, text: string): void {
  const options = OPTIONS.exec(text)?.[0] ?? '';
  const sql = text.slice(options.length);
  if (STATEMENT.test(sql)) {
    if (options) {
      builder.add(start, start + options.length, optionMark);
    }
    const from = start + options.length;
    highlightTree(sqlParser.parse(sql), jupyterHighlightStyle, (begin, end, style) =>
      builder.add(from + begin, from + end, Decoration.mark({ class: style }))
    );
    return;
  }
  for (const found of text.matchAll(COMMAND_PART)) {
    const word = found[0].trimStart();
    const mark = /^["']/.test(word) ? stringMark : word.startsWith('-') ? optionMark : commandMark;
    const from = start + found.index! + found[0].length - word.length;
    builder.add(from, from + word.length, mark);
  }
}

/** For every editor; the highest precedence makes it the innermost, whose colour counts. */
export const lineExtension: Extension = Prec.highest(lines);

export function isSqlCell(source: string): boolean {
  return CELL.test(source);
}

/** Whether the position is in SQL: in a `%%ducklake` cell, or in a `%ducklake` line. */
export function isSqlAt(source: string, offset: number): boolean {
  if (isSqlCell(source)) {
    return offset >= divide(source).magic;
  }
  const line = source.slice(source.lastIndexOf('\n', offset - 1) + 1, offset);
  return LINE.test(line);
}

export function register(languages: IEditorLanguageRegistry): void {
  languages.addLanguage({
    name: 'ducklake',
    displayName: 'DuckLake SQL',
    mime: MIME_TYPE,
    load: () => Promise.resolve(new LanguageSupport(language))
  });
}

/** Gives the cells of a notebook that begin with `%%ducklake` their language, while they do. */
export function followCells(panel: NotebookPanel, enabled: () => boolean): () => void {
  const followed = new WeakSet<object>();
  const settle = (cell: CodeCell) => {
    const wanted = enabled() && isSqlCell(cell.model.sharedModel.getSource());
    const before = panel.content.codeMimetype;
    if (wanted && cell.model.mimeType !== MIME_TYPE) {
      cell.model.mimeType = MIME_TYPE;
    } else if (!wanted && cell.model.mimeType === MIME_TYPE) {
      cell.model.mimeType = before;
    }
  };
  const all = () => {
    for (const cell of panel.content.widgets) {
      if (!(cell instanceof CodeCell)) {
        continue;
      }
      if (!followed.has(cell)) {
        followed.add(cell);
        cell.model.contentChanged.connect(() => settle(cell));
        // The notebook sets it whenever a kernel has sent its language.
        cell.model.mimeTypeChanged.connect(() => settle(cell));
      }
      settle(cell);
    }
  };
  const watch = () => {
    panel.content.model?.cells.changed.connect(all);
    all();
  };
  panel.content.modelChanged.connect(watch);
  watch();
  void panel.revealed.then(all);
  return all;
}
