import { scanLines } from '../src/config/line-scanner.ts';

/** One key with its explanation in reference.conf. */
export interface KeyDocument {
  readonly key: string;
  /** The default as reference.conf writes it; null: the key has no default. */
  readonly defaultValue: string | null;
  readonly explanation: string;
  /** The rule for valid values, without the full stop. */
  readonly value: string;
}

/** The contents of reference.conf: the comment at its head, those of sections, and its keys in order. */
export interface ReferenceDocument {
  readonly head: readonly string[];
  readonly sections: ReadonlyMap<string, string>;
  readonly keys: readonly KeyDocument[];
}

/** Parses reference.conf. The first comment is about the file; each other one is about the lines after it. */
export function readReference(text: string): ReferenceDocument {
  const head: string[] = [];
  const sections = new Map<string, string>();
  const keys: KeyDocument[] = [];
  let comment: string[] = [];
  let isHead = true;
  for (const { kind, keyPath: path, commentOrValue: content } of scanLines(text)) {
    if (kind === 'comment') comment.push(content);
    else if (kind === 'blank') {
      if (isHead) head.push(...comment);
      isHead = false;
      comment = [];
    } else {
      if (kind === 'open') sections.set(path, comment.join(' '));
      if (kind === 'key' || kind === 'commented-key') {
        keys.push({ key: path, defaultValue: kind === 'key' ? content : null, ...explain(comment.join(' ')) });
      }
      comment = [];
    }
  }
  return { head, sections, keys };
}

/** A key's comment ends with its rule: `Value: … .` */
function explain(comment: string): { explanation: string; value: string } {
  const at = comment.lastIndexOf('Value: ');
  if (at < 0) return { explanation: comment, value: '' };
  return { explanation: comment.slice(0, at).trim(), value: comment.slice(at + 'Value: '.length).replace(/\.$/, '') };
}
