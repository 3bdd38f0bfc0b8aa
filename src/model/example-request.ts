/** A request that shows what the receiver of a hook gets. It is never sent. */
export interface ExampleRequest {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}
