/** The transports of live connections, with the URL schemes of their addresses. */
export const liveTransportSchemes = {
  websocket: { plain: 'ws', tls: 'wss' },
  tcp: { plain: 'tcp', tls: 'tls' },
} as const;
export type LiveTransport = keyof typeof liveTransportSchemes;
export const liveTransports = Object.keys(liveTransportSchemes) as readonly LiveTransport[];
