import { element } from '../kit/dom';
import { type Answer, reason } from '../kit/line';

interface Saved {
  media: string;
  name: string;
}

/**
 * Return buttons that save the visible rows as a file.
 *
 * @param kinds - kinds of files with their names.
 * @param ask - asks for the rows as a file of a kind.
 * @param tell - shows an error; an empty text removes the one before.
 */
export function downloads(
  kinds: [string, string][],
  ask: (kind: string) => Promise<Answer<Saved>>,
  tell: (problem: string) => void
): HTMLElement {
  const download = async (kind: string) => {
    tell('');
    for (const button of buttons) button.disabled = true;
    try {
      const { content, buffers } = await ask(kind);
      const address = URL.createObjectURL(new Blob(buffers, { type: content.media }));
      element('a', { href: address, download: content.name }).click();
      setTimeout(() => URL.revokeObjectURL(address), 60_000);
    } catch (error) {
      tell(reason(error));
    } finally {
      for (const button of buttons) button.disabled = false;
    }
  };
  const buttons = kinds.map(([kind, name]) =>
    element(
      'button',
      { type: 'button', title: `Download what is seen as ${name}`, onclick: () => download(kind) },
      name
    )
  );
  return element('span', { role: 'group', 'aria-label': 'Download', class: 'dlk-tb-files' }, ...buttons);
}
