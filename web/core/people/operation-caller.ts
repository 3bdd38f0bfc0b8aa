import type { Decoder } from '../../../client/core/decode.ts';

/** An object that calls operations of the server. */
export interface OperationCaller {
  /** Calls an operation. Rejects with ServerError and ConnectionError. */
  call<Answer>(operation: string, input: object, decode: Decoder<Answer>): Promise<Answer>;
}
