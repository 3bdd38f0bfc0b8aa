import type { Mutant } from './mutant.ts';

const CARDS = 'src/callers/core/message-cards.ts';
const CARD_TESTS = 'test/callers/message-cards.test.ts';
const POST_TESTS = 'test/http/callers/message-cards.test.ts';

/** Faults in the cards of messages: their contents, their bounds, and their removal. */
export const CARD_MUTANTS: readonly Mutant[] = [
  {
    name: 'cards-without-bound',
    promise: 'The cards of a message have 64 KiB at most, however large the body was that they come from.',
    file: CARDS,
    find: 'if (Buffer.byteLength(complete) <= MAX_CARDS_BYTES) return complete;',
    replace: 'if (complete.length <= MAX_CARDS_BYTES) return complete;',
    tests: [CARD_TESTS, '-t', 'too large'],
  },
  {
    name: 'cards-hold-any-address',
    promise: 'An address in a card is one of the web or of mail.',
    file: CARDS,
    find: 'const link = safeLink(url);',
    replace: 'const link = url;',
    tests: [CARD_TESTS, '-t', 'leave out the address'],
  },
  {
    name: 'deletion-keeps-cards',
    promise: 'What a deleted message said is erased from the database, its cards as well.',
    file: 'src/storage/messages/messages.ts',
    find: 'attachments = null, cards = null, deleted_at',
    replace: 'attachments = null, deleted_at',
    tests: [POST_TESTS, '-t', 'also from the database'],
  },
  {
    name: 'alert-edit-keeps-cards',
    promise: 'An alert that ends changes the cards of its message in the same commit as the text.',
    file: 'src/storage/messages/alerts.ts',
    find: 'text = w.edited_text, cards = w.edited_cards::jsonb, edited_at',
    replace: 'text = w.edited_text, edited_at',
    tests: [POST_TESTS, '-t', 'in the same change'],
  },
];
