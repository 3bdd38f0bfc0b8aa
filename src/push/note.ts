import type { PushContent } from '../config/config.ts';
import { OTHERS_CHARACTERS, SHOWN_MESSAGES, type ShownMessage, type Subject } from '../storage/push-subjects.ts';
import type { PushNote } from './vendor.ts';

/** What makes a note beside its subject. */
export interface NoteRules {
  readonly content: PushContent;
  /** The title of a push that is to tell nothing. */
  readonly projectName: string;
  readonly giveUpAfterMs: number;
}

/** What a device is told of a subject: of several messages the newest, for one who wants mentions the newest of those. */
export function noteOf({ claim, title, messages, ageMs }: Subject, rules: NoteRules): PushNote {
  const { conversationId, firstSeq, lastSeq, nick, level, unread } = claim;
  const mentioning = messages.filter(({ mentions }) => mentions.includes(nick));
  const shown = (level === 'mentions' ? mentioning[0] : undefined) ?? messages[0]!;
  return {
    conversationId,
    firstSeq,
    lastSeq,
    ...wording(shown, title, rules),
    unread,
    urgent: title === null || mentioning.length > 0,
    expiresAt: new Date(Date.now() + rules.giveUpAfterMs - ageMs),
  };
}

/**
 * Whether something of it is for the device's owner: who has chosen mentions alone since the row was made is told of
 * those. What was cut, or is further back, may have one.
 */
export function isWanted({ claim: { level, nick }, messages }: Subject): boolean {
  if (level !== 'mentions' || messages.length >= SHOWN_MESSAGES) return true;
  return messages.some(({ text, mentions }) => text.length >= OTHERS_CHARACTERS || mentions.includes(nick));
}

function wording(
  { sender, text, files }: ShownMessage,
  title: string | null,
  { content, projectName }: NoteRules,
): Pick<PushNote, 'title' | 'text'> {
  if (content === 'none') return { title: projectName, text: null };
  const where = title ?? sender;
  if (content === 'sender') return { title: where, text: title === null ? null : sender };
  const said = text.trim() === '' ? files.join(', ') : text;
  return { title: where, text: title === null ? said : `${sender}: ${said}` };
}
