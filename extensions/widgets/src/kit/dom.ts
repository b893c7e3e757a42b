/** Elements of HTML and SVG, with their attributes and children. */

type Value = string | number | boolean | null | undefined;

/** Attributes by name, and listeners as `onclick`; an absent or false value leaves an attribute out. */
export interface Attributes {
  onchange?: (event: Event) => unknown;
  onclick?: (event: MouseEvent) => unknown;
  oninput?: (event: Event) => unknown;
  onkeydown?: (event: KeyboardEvent) => unknown;
  onpointerdown?: (event: PointerEvent) => unknown;
  onscroll?: (event: Event) => unknown;
  ontoggle?: (event: Event) => unknown;
  [name: string]: Value | ((event: never) => unknown);
}

export type Child = Node | string;

export function element<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[Tag] {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') node.addEventListener(name.slice(2), value as EventListener);
    else setAttribute(node, name, value);
  }
  node.append(...children);
  return node;
}

function setAttribute(node: Element, name: string, value: Value): void {
  if (value === undefined || value === null || value === false) return;
  node.setAttribute(name, value === true ? '' : String(value));
}

export function shape<Tag extends keyof SVGElementTagNameMap>(
  tag: Tag,
  attributes: Record<string, string | number>,
  text?: string
): SVGElementTagNameMap[Tag] {
  const node = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
  if (text !== undefined) node.textContent = text;
  return node;
}

/** Return NULL as all views show it. */
export function nullMark(): HTMLElement {
  return element('i', { class: 'dlk-soft' }, 'NULL');
}
