/** Events that reverse webhooks can ask for besides `message.created`, which every hook gets. */
export const changeEventKinds = ['message.updated', 'message.deleted'] as const;
export type ChangeEventKind = (typeof changeEventKinds)[number];
