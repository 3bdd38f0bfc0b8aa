import type { Command } from 'commander';
import type { RevocationReport } from '../../operations/groups/access-revocation.ts';

/** The options of the commands that end a member's rights in a group. */
export interface RevocationFlags {
  readonly rotateToken?: boolean;
  readonly revokeInvites?: boolean;
}

export function withRevocationFlags(command: Command): Command {
  return command
    .option('--rotate-token', 'replace the integration token in the same call')
    .option('--revoke-invites', 'revoke all open invitations of the group in the same call');
}

/** The options as fields of the operation's input. */
export function revocationInput({ rotateToken, revokeInvites }: RevocationFlags): object {
  return {
    ...(rotateToken === undefined ? {} : { rotate_token: rotateToken }),
    ...(revokeInvites === undefined ? {} : { revoke_invites: revokeInvites }),
  };
}

/** The fields of an operation's answer that report revoked rights; each of them may be absent. */
type RevokedAccessResult = { readonly [Key in keyof RevocationReport]?: RevocationReport[Key] | undefined };

/** Lines that say what was revoked together with a member's rights, and what the administrator still has to do. */
export function revokedAccessLines(group: number, user: string, revokedAccess: RevokedAccessResult): string[] {
  const { bots = [], invites_ended: ended = 0, invites_seen: seen = [], hooks = [], token } = revokedAccess;
  return [
    ...(bots.length === 0 ? [] : [`The same holds for the bots of ${user}: ${bots.join(', ')}.`]),
    ...(ended === 0 ? [] : [`${ended} invitation${ended === 1 ? ' is' : 's are'} revoked.`]),
    ...(token === 'rotated'
      ? [`The integration token is replaced: klatch group token show ${group} prints the new one.`]
      : []),
    ...(token === 'seen'
      ? [`${user} could see the integration token, which still works: klatch group token rotate ${group} replaces it.`]
      : []),
    ...(seen.length === 0
      ? []
      : [`${user} could see the links of these invitations, which are still open: ${seen.join(', ')}.`]),
    ...(hooks.length === 0
      ? []
      : [
          `${user} may have registered one of these reverse webhooks: ${hooks.join(', ')} (klatch group info ${group}).`,
        ]),
  ];
}
