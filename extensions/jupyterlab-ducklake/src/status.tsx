/** The status bar's item: the lake, the snapshot it is at, and whether that is the present. */

import { ReactWidget } from '@jupyterlab/apputils';
import { TranslationBundle } from '@jupyterlab/translation';
import * as React from 'react';

import { duckLakeIcon } from './icons';
import { Links } from './links';
import { describeLake } from './rows';
import { Running } from './running';

export class LakeStatus extends ReactWidget {
  constructor(links: Links, open: () => void, trans: TranslationBundle) {
    super();
    this._links = links;
    this._open = open;
    this._trans = trans;
    this.addClass('jp-DuckLake-status');
    links.changed.connect(this.update, this);
  }

  protected render(): JSX.Element | null {
    const lake = this._links.current?.current;
    if (!lake) {
      return null;
    }
    const trans = this._trans;
    const place = lake.schema === 'main' ? lake.alias : `${lake.alias}.${lake.schema}`;
    const at = lake.snapshot === undefined ? trans.__('cannot be read') : trans.__('snapshot %1', lake.snapshot);
    const state = lake.travelling
      ? trans.__('time travelling')
      : lake.in_transaction
        ? trans.__('in transaction')
        : lake.read_only
          ? trans.__('read-only')
          : '';
    const label = [place, at, state].filter(text => text).join(' · ');
    return (
      <>
        <button
          className={`jp-DuckLake-statusButton${lake.travelling || lake.in_transaction ? ' jp-mod-notable' : ''}`}
          title={`${describeLake(lake)}\n${trans.__('Click opens the sidebar')}`}
          aria-label={trans.__('DuckLake: %1', label)}
          onClick={this._open}
        >
          <duckLakeIcon.react tag="span" className="jp-DuckLake-statusIcon" />
          {label}
        </button>
        <Running links={this._links} trans={trans} brief />
      </>
    );
  }

  private _links: Links;
  private _open: () => void;
  private _trans: TranslationBundle;
}
