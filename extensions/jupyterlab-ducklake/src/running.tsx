/** The statement that the kernel runs: what it is doing, how far it is, and a button that stops it. */

import { UseSignal } from '@jupyterlab/apputils';
import { TranslationBundle } from '@jupyterlab/translation';
import { stopIcon } from '@jupyterlab/ui-components';
import * as React from 'react';

import { Links } from './links';

interface IRunningProps {
  links: Links;
  trans: TranslationBundle;
  /** On one line, without the statement. */
  brief?: boolean;
}

export function Running(props: IRunningProps): JSX.Element {
  return <UseSignal signal={props.links.progressed}>{() => <Strip {...props} />}</UseSignal>;
}

function Strip({ links, trans, brief }: IRunningProps): JSX.Element | null {
  const link = links.current;
  const running = link?.running;
  if (!link || !running) {
    return null;
  }
  const { statement, text, share } = running;
  return (
    <div className={`jp-DuckLake-running${brief ? ' jp-mod-brief' : ''}`}>
      {!brief && statement && (
        <code className="jp-DuckLake-statement" title={statement}>
          {statement}
        </code>
      )}
      <span
        className={`jp-DuckLake-bar${share === null ? ' jp-mod-unknown' : ''}`}
        role="progressbar"
        aria-label={trans.__('Statement')}
        aria-valuenow={share === null ? undefined : Math.round(share * 100)}
        aria-valuetext={text}
      >
        <span style={{ width: `${(share ?? 0.3) * 100}%` }} />
      </span>
      <span className="jp-DuckLake-progress" title={statement || text}>
        {text}
      </span>
      <button
        className="jp-DuckLake-stop"
        title={trans.__('Stop the statement (interrupts the kernel)')}
        aria-label={trans.__('Stop the statement')}
        onClick={() => void link.interrupt()}
      >
        <stopIcon.react tag="span" />
      </button>
    </div>
  );
}
