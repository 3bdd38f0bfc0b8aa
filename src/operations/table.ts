import { searchForAccounts } from './accounts/account-search.ts';
import { blockAccount, listBlockedAccounts, unblockAccount } from './accounts/blocks.ts';
import { createBotToken, listBotTokens, revokeBotToken } from './accounts/bot-tokens.ts';
import { createBot, listOwnBots, removeBot } from './accounts/bots.ts';
import { listOwnDevices, registerDevice, removeDevice } from './accounts/devices.ts';
import { changeOwnProfile, findAccount, showOwnProfile } from './accounts/profile.ts';
import { pushStatus } from './accounts/push-status.ts';
import { testPushToUser } from './accounts/push-test.ts';
import { createSignInLink } from './accounts/sign-in-links.ts';
import { reactivateUser, deactivateUser, updateUser } from './accounts/user-changes.ts';
import { createUser, listUsersAndBots } from './accounts/users.ts';
import { signUp } from './auth/auth-sign-up.ts';
import { startSignIn } from './auth/auth-start.ts';
import { verifySignIn } from './auth/auth-verify.ts';
import { createAppPassword } from './auth/app-passwords.ts';
import { endOtherSessions, endOwnSession, listOwnSessions } from './auth/session-list.ts';
import type { Operation } from './core/operation.ts';
import { archiveGroup, unarchiveGroup } from './groups/archive.ts';
import { listOwnConversations, showOwnConversation } from './groups/conversations.ts';
import { listGroupExpectations, removeGroupExpectation, setGroupExpectation } from './groups/expectations.ts';
import { leaveGroup, setMemberRole, transferGroup } from './groups/group-roles.ts';
import { rotateIntegrationToken, showIntegrationToken } from './groups/group-token.ts';
import { removeIncomingSecret, setIncomingSecret, showIncomingSecret } from './groups/incoming-secret.ts';
import { createGroup, editGroup, groupInfo, listAllGroups } from './groups/groups.ts';
import { previewInvite } from './groups/invite-preview.ts';
import { createInvite, listGroupInvites, revokeInvite } from './groups/invites.ts';
import { findPublicGroups, joinGroup } from './groups/join-group.ts';
import { addMember, listGroupMembers, removeMember } from './groups/members.ts';
import { updateNotifications } from './groups/notification-settings.ts';
import { openPrivateConversation } from './groups/private-conversations.ts';
import { createHook } from './hooks/hook-create.ts';
import { hookLog } from './hooks/hook-delivery-log.ts';
import { hookInfo, listAllHooks, listGroupHooks, listManagedHooks } from './hooks/hook-list.ts';
import { exampleOfHook } from './hooks/hook-example.ts';
import { pingHook } from './hooks/hook-ping.ts';
import { hookStats } from './hooks/hook-stats.ts';
import { redeliverHook, discardHookBacklog } from './hooks/hook-redeliver.ts';
import { restoreRemovedHook } from './hooks/hook-restore.ts';
import { removeGroupHook, updateHook } from './hooks/hook-update.ts';
import { deleteMessage, editMessage } from './messages/edit-message.ts';
import { messageHistory } from './messages/history.ts';
import { listMentions } from './messages/mentions.ts';
import { sendMessage } from './messages/messages.ts';
import { markRead, sendTyping } from './messages/read-state.ts';
import { searchMessages } from './messages/search.ts';
import { syncChanges } from './messages/sync.ts';
import { checkFiles } from './server/files-check.ts';
import { createTemporaryFileLink, listOwnFiles, removeUnattachedFile } from './server/files.ts';
import { authenticateLive, setLiveForeground, listPresence, pingLive, subscribeLive } from './server/live.ts';
import { serverStatus } from './server/server-status.ts';

/** All operations by name. Every interface that serves operations serves all of them. */
export function operationTable(): ReadonlyMap<string, Operation> {
  // The operations are in the order of the documents, by noun. A noun with many operations takes several lines.
  const all = [
    [startSignIn, verifySignIn, signUp],
    [findAccount, searchForAccounts, createUser, listUsersAndBots],
    [createSignInLink, updateUser, deactivateUser, reactivateUser],
    [createAppPassword, listOwnSessions, endOwnSession, endOtherSessions],
    [showOwnProfile, changeOwnProfile],
    [registerDevice, listOwnDevices, removeDevice],
    [blockAccount, unblockAccount, listBlockedAccounts],
    [createBot, listOwnBots, removeBot],
    [createBotToken, listBotTokens, revokeBotToken],
    [createGroup, editGroup, groupInfo, listAllGroups, archiveGroup, unarchiveGroup],
    [listGroupMembers, addMember, removeMember, setMemberRole, transferGroup, leaveGroup],
    [findPublicGroups, joinGroup, showIntegrationToken, rotateIntegrationToken],
    [showIncomingSecret, setIncomingSecret, removeIncomingSecret],
    [createInvite, listGroupInvites, revokeInvite, previewInvite],
    [setGroupExpectation, listGroupExpectations, removeGroupExpectation],
    [openPrivateConversation],
    [listOwnConversations, showOwnConversation, syncChanges],
    [updateNotifications],
    [
      createHook,
      listGroupHooks,
      listManagedHooks,
      listAllHooks,
      hookInfo,
      hookLog,
      hookStats,
      updateHook,
      pingHook,
      exampleOfHook,
    ],
    [redeliverHook, discardHookBacklog, removeGroupHook, restoreRemovedHook],
    [sendMessage, messageHistory, editMessage, deleteMessage, markRead, sendTyping, searchMessages],
    [listMentions],
    [authenticateLive, subscribeLive, setLiveForeground, pingLive],
    [listPresence],
    [createTemporaryFileLink, listOwnFiles, removeUnattachedFile, checkFiles],
    [pushStatus, testPushToUser],
    [serverStatus],
  ].flat();
  return new Map(all.map((operation) => [operation.name, operation as unknown as Operation]));
}
