import { adaptiveCard } from './adaptive-card.ts';
import type { CallerFormat, CallerRequest } from './core/caller-format.ts';
import { messageCard } from './message-card.ts';

/** What Teams takes: an Adaptive Card, or a MessageCard, which needs no `@type`. It has to be named by the address. */
export const teams: CallerFormat = {
  name: 'teams',
  matches: () => false,
  delegateOf: cardFormatOf,
  read: (request) => cardFormatOf(request).read(request),
};

function cardFormatOf(request: CallerRequest): CallerFormat {
  return adaptiveCard.matches(request) ? adaptiveCard : messageCard;
}
