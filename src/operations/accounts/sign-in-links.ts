import * as z from 'zod';
import { KlatchError } from '../../errors.ts';
import { lockActiveAccount } from '../../storage/accounts/accounts.ts';
import { replaceSignInLink } from '../../storage/accounts/sign-in-links.ts';
import { resolveActiveAccount } from '../core/access.ts';
import { defineOperation } from '../core/operation.ts';
import { browserLinkFor, hashOpaqueToken, signInLinkFor, newLinkToken } from '../auth/sign-in.ts';
import { nickField, nickSchema } from '../core/schemas.ts';

const LINK_TTL_MS = 24 * 60 * 60_000;

export const createSignInLink = defineOperation({
  name: 'accounts.invite',
  summary: 'Create a link that signs a person in once, within 24 hours. A new link replaces the former one.',
  input: z.strictObject({ user: nickSchema }),
  output: z.object({
    user: nickField,
    link: z
      .string()
      .describe('For a person: its page signs in with a click, so that programs which look at mail do not use it up.'),
    browser_link: z
      .string()
      .nullable()
      .describe(
        "For whoever asks, to open at once: on the server's machine it signs in without a click. Null where `web.enabled` is false.",
      ),
    expires_at: z.string().describe('End of the validity of the link.'),
  }),
  who: 'administrator',
  scope: null,
  errors: ['not_found'],
  run: async (services, { user }) => {
    const token = newLinkToken();
    const expiresAt = await services.database.general.transaction(async (tx) => {
      const { id } = await resolveActiveAccount(tx, user);
      const account = await lockActiveAccount(tx, id);
      if (account === null)
        throw new KlatchError('not_found', {
          sentence: `${user} was deactivated just now: activate the account first`,
        });
      if (account.kind === 'bot') {
        const sentence = `${user} is a bot, and bots do not sign in: its owner makes tokens for it (tokens.create)`;
        throw new KlatchError('invalid_input', { sentence });
      }
      return replaceSignInLink(tx, { accountId: id, tokenHash: hashOpaqueToken(token), validMs: LINK_TTL_MS });
    });
    return {
      user,
      link: signInLinkFor(services, token),
      browser_link: browserLinkFor(services, token),
      expires_at: expiresAt.toISOString(),
    };
  },
});
