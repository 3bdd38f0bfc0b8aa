import { counted } from './words.ts';

/** The words of a conversation: its messages, and what people do with them. */
export const timelineWords = {
  moreOf: (seq: number) => `More for message ${seq}`,
  textCopied: 'Text copied.',
  cannotCopy: 'Not copied: the browser does not let this page copy.',
  editingOf: (who: string, hasCards: boolean) =>
    `You are editing a message of ${who}. ${hasCards ? 'The edit removes its card. ' : ''}A notice will tell the group.`,
  deletedBriefly: 'Message deleted. You can undo it for 5 seconds.',
  deletionUndone: 'Message kept.',
  newMessages: (count: number) => counted(count, 'new message', 'new messages'),
  typing: (names: readonly string[]) => {
    const [first, second] = names;
    if (names.length === 1) return `${first} is typing …`;
    return names.length === 2 ? `${first} and ${second} are typing …` : `${names.length} people are typing …`;
  },
  messageOf: (who: string, what: string) => `${who}: ${what}`,
  toNewestOf: (count: number) => `${counted(count, 'new message', 'new messages')}: to the newest`,
} as const;
