import { accountOperations } from './account-table.ts';
import { groupOperations } from './group-table.ts';
import { listOwnConversations, showOwnConversation } from './conversations.ts';
import { linkFile, listOwnFiles, removeOwnFile } from './files.ts';
import { checkFiles } from './files-check.ts';
import { messageHistory } from './history.ts';
import { removeAnyHook, updateAnyHook } from './hook-control.ts';
import { createHook } from './hook-create.ts';
import { hookInfo, listAllHooks, listGroupHooks } from './hook-directory.ts';
import { anyHookLog } from './hook-log.ts';
import { pingAnyHook } from './hook-ping.ts';
import { redeliverAnyHook, skipAnyHook } from './hook-redelivery.ts';
import { restoreRemovedHook } from './hook-restore.ts';
import { authenticateLive, followLive, foregroundLive, listPresence, pingLive } from './live.ts';
import { sendMessage } from './messages.ts';
import { updateNotifications } from './notifications.ts';
import type { Operation } from './operation.ts';
import { openPrivate } from './private.ts';
import { pushStatus } from './push-status.ts';
import { testPush } from './push-test.ts';
import { readMessages, typeMessage } from './reading.ts';
import { deleteMessage, editMessage } from './revisions.ts';
import { searchMessages } from './search.ts';
import { serverStatus } from './server-status.ts';
import { syncChanges } from './sync.ts';

/** Every operation by name. An edge that serves operations serves all of these. */
export function operationTable(): ReadonlyMap<string, Operation> {
  const all = [
    ...accountOperations(),
    ...groupOperations(),
    openPrivate,
    listOwnConversations,
    showOwnConversation,
    updateNotifications,
    createHook,
    listGroupHooks,
    listAllHooks,
    hookInfo,
    anyHookLog,
    updateAnyHook,
    pingAnyHook,
    redeliverAnyHook,
    skipAnyHook,
    removeAnyHook,
    restoreRemovedHook,
    sendMessage,
    authenticateLive,
    followLive,
    foregroundLive,
    pingLive,
    listPresence,
    messageHistory,
    editMessage,
    deleteMessage,
    readMessages,
    typeMessage,
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
