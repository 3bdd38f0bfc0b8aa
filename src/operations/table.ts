import { accountOperations } from './account-table.ts';
import { groupOperations } from './group-table.ts';
import { listOwnConversations, showOwnConversation } from './conversations.ts';
import { linkFile, listOwnFiles, removeOwnFile } from './files.ts';
import { checkFiles } from './files-check.ts';
import { messageHistory } from './history.ts';
import { removeGroupHook, updateHook } from './hook-update.ts';
import { createHook } from './hook-create.ts';
import { hookInfo, listAllHooks, listGroupHooks } from './hook-list.ts';
import { hookLog } from './hook-delivery-log.ts';
import { pingHook } from './hook-ping.ts';
import { redeliverHook, skipHook } from './hook-redeliver.ts';
import { restoreRemovedHook } from './hook-restore.ts';
import { authenticateLive, subscribeLive, foregroundLive, listPresence, pingLive } from './live.ts';
import { sendMessage } from './messages.ts';
import { updateNotifications } from './notification-settings.ts';
import type { Operation } from './operation.ts';
import { openPrivateConversation } from './private-conversations.ts';
import { pushStatus } from './push-status.ts';
import { testPush } from './push-test.ts';
import { markRead, sendTyping } from './read-state.ts';
import { deleteMessage, editMessage } from './edit-message.ts';
import { searchMessages } from './search.ts';
import { serverStatus } from './server-status.ts';
import { syncChanges } from './sync.ts';

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
