import type { Request } from 'express';
import { sourceKey, type SourceKey } from '../model/source-key.ts';

/** The network that a request counts for, behind trusted proxies the client's. */
export function requestSource(req: Request): SourceKey {
  return sourceKey(req.ip ?? '');
}
