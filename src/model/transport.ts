/** Transports of the texts of live connections, with the schemes of their addresses. */
export const liveTransportSchemes = {
  websocket: { plain: 'ws', tls: 'wss' },
  tcp: { plain: 'tcp', tls: 'tls' },
} as const;
export type LiveTransport = keyof typeof liveTransportSchemes;
export const liveTransports = Object.keys(liveTransportSchemes) as readonly LiveTransport[];
