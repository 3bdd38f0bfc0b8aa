import { signUp } from './auth-sign-up.ts';
import { startSignIn } from './auth-start.ts';
import { verifySignIn } from './auth-verify.ts';
import { addBlock, listOwnBlocks, removeBlock } from './blocks.ts';
import { createToken, listTokens, revokeToken } from './bot-tokens.ts';
import { createBot, listOwnBots, removeBot } from './bots.ts';
import { listOwnDevices, registerDevice, removeDevice } from './devices.ts';
import { changeProfile, findAccount, showProfile } from './profile.ts';
import { endOtherSessions, endOwnSession, listOwnSessions } from './session-list.ts';
import { activateUser, deactivateUser, updateUser } from './user-changes.ts';
import { inviteUser } from './sign-in-links.ts';
import { createUser, listUsers } from './users.ts';

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
