/** The tree: one row takes the focus, arrows move it, Enter inserts, Shift+F10 opens the menu. */

import { caretRightIcon } from '@jupyterlab/ui-components';
import * as React from 'react';

import { rowIcons } from './icons';
import { IRow } from './rows';

interface ITreeProps {
  rows: IRow[];
  label: string;
  onToggle: (row: IRow, open: boolean) => void;
  onInsert: (row: IRow) => void;
}

/** A tree as the ARIA practices describe it. */
export function Tree(props: ITreeProps): JSX.Element {
  const { rows } = props;
  const [focused, setFocused] = React.useState('');
  const list = React.useRef<HTMLDivElement>(null);
  const at = Math.max(
    0,
    rows.findIndex(row => row.key === focused)
  );

  const focus = (index: number) => {
    const row = rows[Math.min(Math.max(index, 0), rows.length - 1)];
    setFocused(row.key);
    list.current?.querySelector<HTMLElement>(`[data-key=${CSS.escape(row.key)}]`)?.focus();
  };
  const parent = (index: number) => {
    let up = index;
    while (up >= 0 && rows[up].level >= rows[index].level) {
      up -= 1;
    }
    return up;
  };
  const onKeyDown = (event: React.KeyboardEvent) => {
    if (event.key === 'ContextMenu' || (event.key === 'F10' && event.shiftKey)) {
      openMenu(event.target as HTMLElement);
      event.preventDefault();
      return;
    }
    if (event.altKey || event.ctrlKey || event.metaKey) {
      return;
    }
    const row = rows[at];
    switch (event.key) {
      case 'ArrowDown':
        focus(at + 1);
        break;
      case 'ArrowUp':
        focus(at - 1);
        break;
      case 'Home':
        focus(0);
        break;
      case 'End':
        focus(rows.length - 1);
        break;
      case 'ArrowRight':
        if (row.open === false) {
          props.onToggle(row, true);
        } else if (row.open && rows[at + 1]?.level > row.level) {
          focus(at + 1);
        }
        break;
      case 'ArrowLeft':
        if (row.open) {
          props.onToggle(row, false);
        } else if (parent(at) >= 0) {
          focus(parent(at));
        }
        break;
      case 'Enter':
        if (row.insert !== undefined) {
          props.onInsert(row);
        } else if (row.open !== undefined) {
          props.onToggle(row, !row.open);
        }
        break;
      case ' ':
        if (row.open !== undefined) {
          props.onToggle(row, !row.open);
        }
        break;
      default:
        return;
    }
    event.preventDefault();
    event.stopPropagation();
  };

  return (
    <div className="jp-DuckLake-tree" role="tree" aria-label={props.label} ref={list} onKeyDown={onKeyDown}>
      {rows.map((row, index) => (
        <Row
          key={row.key}
          row={row}
          focusable={index === at}
          onFocus={() => setFocused(row.key)}
          onToggle={open => props.onToggle(row, open)}
          onInsert={() => props.onInsert(row)}
        />
      ))}
    </div>
  );
}

/** Opens the context menu of a row under it, as a right click would; browsers differ in what Shift+F10 does. */
function openMenu(row: HTMLElement): void {
  const { left, bottom } = row.getBoundingClientRect();
  row.dispatchEvent(
    new MouseEvent('contextmenu', { bubbles: true, cancelable: true, clientX: left + 24, clientY: bottom - 2 })
  );
}

interface IRowProps {
  row: IRow;
  focusable: boolean;
  onFocus: () => void;
  onToggle: (open: boolean) => void;
  onInsert: () => void;
}

function Row(props: IRowProps): JSX.Element {
  const { row } = props;
  const Icon = rowIcons[row.kind];
  const inserts = row.insert !== undefined;
  return (
    <div
      className={`jp-DuckLake-row${row.failed ? ' jp-mod-failed' : ''}${row.comment ? ' jp-mod-described' : ''}`}
      role="treeitem"
      aria-level={row.level}
      aria-expanded={row.open}
      aria-current={row.current || undefined}
      aria-label={[row.kind === 'group' || row.kind === 'note' ? '' : row.kind, row.label, row.detail, row.comment]
        .filter(text => text)
        .join(' ')}
      tabIndex={props.focusable ? 0 : -1}
      data-key={row.key}
      data-kind={row.kind}
      title={row.title}
      style={{ paddingLeft: `${(row.level - 1) * 14 + 4}px` }}
      draggable={inserts}
      onDragStart={event => {
        event.dataTransfer.setData('text/plain', row.insert ?? '');
        event.dataTransfer.effectAllowed = 'copy';
      }}
      onFocus={props.onFocus}
      onClick={() => (inserts ? props.onInsert() : row.open !== undefined && props.onToggle(!row.open))}
    >
      <span
        className={`jp-DuckLake-caret${row.open ? ' jp-mod-open' : ''}`}
        aria-hidden="true"
        onClick={event => {
          if (row.open !== undefined) {
            event.stopPropagation();
            props.onToggle(!row.open);
          }
        }}
      >
        {row.open !== undefined && <caretRightIcon.react tag="span" />}
      </span>
      {row.change && <span className="jp-DuckLake-change" data-change={row.change} aria-hidden="true" />}
      {Icon && <Icon.react tag="span" className="jp-DuckLake-icon" />}
      <span className={`jp-DuckLake-label${row.marked ? ' jp-mod-marked' : ''}`}>{row.label}</span>
      {row.detail && <span className="jp-DuckLake-detail">{row.detail}</span>}
      {row.comment && <span className="jp-DuckLake-comment">{row.comment}</span>}
    </div>
  );
}
