import type { ShownMessage } from './page-scripts.ts';

/** The messages that one tab had in view, over all walks. A walk scrolls through the conversation. */
export class ShownMessages {
  /** Violations, in words. */
  readonly violations = new Set<string>();
  readonly #textBySeq = new Map<number, string>();

  /** Adds the messages of one walk, in which the same message may be several times. */
  note(shown: readonly ShownMessage[]): void {
    for (const [seq, text] of shown) {
      const known = this.#textBySeq.get(seq);
      if (known !== undefined && known !== text) this.violations.add(`message ${seq} was shown with two texts`);
      this.#textBySeq.set(seq, text);
    }
  }

  textAt(seq: number): string | undefined {
    return this.#textBySeq.get(seq);
  }

  get seqs(): number[] {
    return [...this.#textBySeq.keys()];
  }
}

/** A message in the database. */
export interface StoredMessage {
  readonly seq: number;
  readonly text: string;
}

/** The data that are compared in the end, when nobody posts or sends any more. */
export interface ViewEvidence {
  /** All messages of the conversation, by seq. */
  readonly stored: readonly StoredMessage[];
  /** By tab: the messages that were in view. */
  readonly shown: readonly ShownMessages[];
  /** By tab: the texts that were sent in it, in their order. */
  readonly sent: readonly (readonly string[])[];
}

/** Returns the violations, in words: a message that a tab did not show, or a text that is not stored exactly once. */
export function judgeViews({ stored, shown, sent }: ViewEvidence): string[] {
  return [
    ...shown.flatMap((messages, tab) => viewViolations(stored, messages).map((sentence) => `tab ${tab}: ${sentence}`)),
    ...sent.flatMap((texts, tab) => sendViolations(stored, texts).map((sentence) => `tab ${tab}: ${sentence}`)),
    ...repeatedTexts(stored),
  ];
}

function viewViolations(stored: readonly StoredMessage[], shown: ShownMessages): string[] {
  const missing = stored.filter(({ seq }) => shown.textAt(seq) === undefined);
  const others = stored.filter(({ seq, text }) => shown.textAt(seq) !== undefined && shown.textAt(seq) !== text);
  const seqs = new Set(stored.map(({ seq }) => seq));
  const invented = shown.seqs.filter((seq) => !seqs.has(seq));
  return [
    ...shown.violations,
    ...(missing.length > 0 ? [`${missing.length} messages were not shown, the first is ${missing[0]!.seq}`] : []),
    ...(others.length > 0 ? [`${others.length} messages were shown with the text of others`] : []),
    ...(invented.length > 0 ? [`${invented.length} messages were shown that are not stored`] : []),
  ];
}

function sendViolations(stored: readonly StoredMessage[], texts: readonly string[]): string[] {
  const seqByText = new Map(stored.map(({ seq, text }) => [text, seq]));
  const lost = texts.filter((text) => !seqByText.has(text));
  const seqs = texts.flatMap((text) => seqByText.get(text) ?? []);
  const late = seqs.filter((seq, n) => n > 0 && seq < seqs[n - 1]!).length;
  return [
    ...(lost.length > 0 ? [`${lost.length} of its texts were not stored, the first is "${lost[0]}"`] : []),
    ...(late > 0 ? [`${late} of its texts were stored before an earlier one`] : []),
  ];
}

/** Returns a violation if a text is stored twice: all texts that are posted or sent differ. */
function repeatedTexts(stored: readonly StoredMessage[]): string[] {
  const repeated = stored.length - new Set(stored.map(({ text }) => text)).size;
  return repeated > 0 ? [`${repeated} messages were stored twice`] : [];
}
