import { element } from './dom';

/** Return a button that copies a text, or selects the node that shows it where copying is not allowed. */
export function copying(label: string, text: () => string | Promise<string>, node?: Node): HTMLButtonElement {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(await text());
      button.textContent = 'Copied';
    } catch {
      if (node) getSelection()?.selectAllChildren(node);
      button.textContent = node ? 'Selected' : 'Not copied';
    }
    setTimeout(() => {
      button.textContent = label;
    }, 1500);
  };
  const button = element('button', { type: 'button', onclick: copy }, label);
  return button;
}
