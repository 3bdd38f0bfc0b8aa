/** What reverse webhooks can ask for besides new messages, which every hook gets as `message.created`. */
export const changeEventKinds = ['message.updated', 'message.deleted'] as const;
export type ChangeEventKind = (typeof changeEventKinds)[number];
