import { element } from '../kit/dom';
import { type Profile, drawProfile } from './column-profile';

/** Shows the profiles of columns in view, each asked for once. */
export class ColumnProfiles {
  private readonly drawn = new Map<string, HTMLElement | null>();
  /** Elements below the names of the columns that are in the page. */
  private readonly places = new Map<Element, string>();
  private readonly watching: IntersectionObserver;

  /**
   * @param ask - asks for a profile; nothing if other rows are shown by then.
   * @param isPart - whether the rows are the first of many.
   */
  constructor(
    root: Element,
    private readonly ask: (name: string) => Promise<Profile | undefined>,
    private readonly isPart: () => boolean,
    private readonly onError: (error: unknown) => void
  ) {
    const look = (seen: IntersectionObserverEntry[]) => {
      for (const { target, isIntersecting } of seen) if (isIntersecting) void this.show(target);
    };
    this.watching = new IntersectionObserver(look, { root });
  }

  /** Forget the elements of the columns that were in the page. */
  clearPlaces(): void {
    this.watching.disconnect();
    this.places.clear();
  }

  /** Return the element that will show a column's profile. */
  place(name: string): HTMLElement {
    const place = element('span', { class: 'dlk-tb-profile' });
    this.places.set(place, name);
    this.watching.observe(place);
    const drawn = this.drawn.get(name);
    if (drawn) place.replaceChildren(drawn);
    return place;
  }

  /** Ask again, for other rows. */
  reset(): void {
    this.drawn.clear();
    for (const place of this.places.keys()) {
      this.watching.unobserve(place);
      this.watching.observe(place);
    }
  }

  disconnect(): void {
    this.watching.disconnect();
  }

  private async show(target: Element): Promise<void> {
    const name = this.places.get(target);
    if (name === undefined || this.drawn.has(name)) return;
    this.drawn.set(name, null);
    try {
      const profile = await this.ask(name);
      if (!profile) return;
      const drawn = drawProfile(profile, this.isPart());
      this.drawn.set(name, drawn);
      for (const [place, column] of this.places) if (column === name) place.replaceChildren(drawn);
    } catch (error) {
      this.drawn.delete(name);
      this.onError(error);
    }
  }
}
