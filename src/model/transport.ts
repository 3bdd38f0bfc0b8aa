/** What carries the texts of live connections, and the schemes of its addresses. */
export const transportSchemes = {
  websocket: { plain: 'ws', tls: 'wss' },
  tcp: { plain: 'tcp', tls: 'tls' },
} as const;
export type Transport = keyof typeof transportSchemes;
export const transports = Object.keys(transportSchemes) as readonly Transport[];
