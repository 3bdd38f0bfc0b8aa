import { signUp } from './auth/auth-sign-up.ts';
import { startSignIn } from './auth/auth-start.ts';
import { verifySignIn } from './auth/auth-verify.ts';
import { addBlock, listOwnBlocks, removeBlock } from './accounts/blocks.ts';
import { createToken, listTokens, revokeToken } from './accounts/bot-tokens.ts';
import { createBot, listOwnBots, removeBot } from './accounts/bots.ts';
import { listOwnDevices, registerDevice, removeDevice } from './accounts/devices.ts';
import { changeProfile, findAccount, showProfile } from './accounts/profile.ts';
import { endOtherSessions, endOwnSession, listOwnSessions } from './auth/session-list.ts';
import { activateUser, deactivateUser, updateUser } from './accounts/user-changes.ts';
import { inviteUser } from './accounts/sign-in-links.ts';
import { createUser, listUsers } from './accounts/users.ts';

/** The operations about who people are and how they get in, a part of the table of all. */
export function accountOperations() {
  return [
    startSignIn,
    verifySignIn,
    signUp,
    createUser,
    listUsers,
    inviteUser,
    updateUser,
    deactivateUser,
    activateUser,
    listOwnSessions,
    endOwnSession,
    endOtherSessions,
    showProfile,
    changeProfile,
    findAccount,
    registerDevice,
    listOwnDevices,
    removeDevice,
    addBlock,
    removeBlock,
    listOwnBlocks,
    createBot,
    listOwnBots,
    removeBot,
    createToken,
    listTokens,
    revokeToken,
  ] as const;
}
