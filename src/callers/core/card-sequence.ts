import { card, type Card, type Field, type Link, type Mood } from './message-form.ts';
import { MAX_CARDS } from './render-text.ts';

interface Section {
  readonly texts: string[];
  readonly fields: Field[];
  readonly links: Link[];
  readonly imageUrls: string[];
}

/**
 * Collects the elements of a layout in their order, and makes cards of them. A card shows its text before its other
 * parts, so a text after a field, link or image begins another card.
 */
export class CardSequence {
  title = '';
  mood: Mood | null = null;
  readonly #sections: Section[] = [emptySection()];
  readonly #links = new Map<string, { label: string; readonly url: string }>();

  /** True while the sequence has neither a title nor a text, so that the next text may become the title. */
  get isUntitled(): boolean {
    return this.title === '' && this.#last.texts.length === 0 && this.#sections.length === 1;
  }

  addText(text: string): void {
    if (text.trim() === '') return;
    const { fields, links, imageUrls: images } = this.#last;
    const hasPartsAfterText = fields.length > 0 || links.length > 0 || images.length > 0;
    if (hasPartsAfterText && this.#sections.length < MAX_CARDS) this.#sections.push(emptySection());
    this.#last.texts.push(text);
  }

  addField(name: string, value: string, isShort = false): void {
    if (name.trim() !== '' || value.trim() !== '') this.#last.fields.push({ name, value, isShort });
  }

  /**
   * Adds a link. If its URL was added before, the link is not added again; but if the earlier link has no label, it
   * gets this label.
   */
  addLink(label: string, url: string): void {
    const known = this.#links.get(url);
    if (known !== undefined && known.label === '') known.label = label;
    if (known !== undefined || url === '') return;
    const link = { label, url };
    this.#links.set(url, link);
    this.#last.links.push(link);
  }

  addImage(description: string, url: string): void {
    if (description !== '') this.addLink(description, url);
    else if (url !== '') this.#last.imageUrls.push(url);
  }

  cards(): readonly Card[] {
    return this.#sections.map(({ texts, fields, links, imageUrls: images }, index) => {
      const head = index === 0 ? { title: this.title, mood: this.mood } : {};
      const otherImageLinks = images.slice(0, -1).map((url) => ({ label: '', url }));
      return card({
        ...head,
        text: texts.join('\n'),
        fields,
        links: [...links, ...otherImageLinks],
        image: images.at(-1) ?? '',
      });
    });
  }

  get #last(): Section {
    return this.#sections.at(-1)!;
  }
}

function emptySection(): Section {
  return { texts: [], fields: [], links: [], imageUrls: [] };
}
