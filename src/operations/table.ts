import { accountOperations } from './account-table.ts';
import { groupOperations } from './group-table.ts';
import { listOwnConversations, showOwnConversation } from './groups/conversations.ts';
import { linkFile, listOwnFiles, removeOwnFile } from './server/files.ts';
import { checkFiles } from './server/files-check.ts';
import { messageHistory } from './messages/history.ts';
import { removeGroupHook, updateHook } from './hooks/hook-update.ts';
import { createHook } from './hooks/hook-create.ts';
import { hookInfo, listAllHooks, listGroupHooks } from './hooks/hook-list.ts';
import { hookLog } from './hooks/hook-delivery-log.ts';
import { pingHook } from './hooks/hook-ping.ts';
import { redeliverHook, skipHook } from './hooks/hook-redeliver.ts';
import { restoreRemovedHook } from './hooks/hook-restore.ts';
import { authenticateLive, subscribeLive, foregroundLive, listPresence, pingLive } from './server/live.ts';
import { sendMessage } from './messages/messages.ts';
import { updateNotifications } from './groups/notification-settings.ts';
import type { Operation } from './core/operation.ts';
import { openPrivateConversation } from './groups/private-conversations.ts';
import { pushStatus } from './accounts/push-status.ts';
import { testPush } from './accounts/push-test.ts';
import { markRead, sendTyping } from './messages/read-state.ts';
import { deleteMessage, editMessage } from './messages/edit-message.ts';
import { searchMessages } from './messages/search.ts';
import { serverStatus } from './server/server-status.ts';
import { syncChanges } from './messages/sync.ts';

/** Every operation by name. An edge that serves operations serves all of these. */
export function operationTable(): ReadonlyMap<string, Operation> {
  const all = [
    ...accountOperations(),
    ...groupOperations(),
    openPrivateConversation,
    listOwnConversations,
    showOwnConversation,
    updateNotifications,
    createHook,
    listGroupHooks,
    listAllHooks,
    hookInfo,
    hookLog,
    updateHook,
    pingHook,
    redeliverHook,
    skipHook,
    removeGroupHook,
    restoreRemovedHook,
    sendMessage,
    authenticateLive,
    subscribeLive,
    foregroundLive,
    pingLive,
    listPresence,
    messageHistory,
    editMessage,
    deleteMessage,
    markRead,
    sendTyping,
    searchMessages,
    linkFile,
    listOwnFiles,
    removeOwnFile,
    syncChanges,
    pushStatus,
    testPush,
    serverStatus,
    checkFiles,
  ];
  return new Map(all.map((operation) => [operation.name, operation as unknown as Operation]));
}
