/** Tag for a `fetch` whose tags are not known before it: it is purged with every change of the service. */
export declare const anyChange: string
/** Tag that is purged with everything of the service. */
export declare const everything: string
/** Handler for `POST`: verifies the signature, purges the tags, and tells Trellis the id of this process. Its requests fail without a secret. */
export declare const createPurgeRoute: (options: {
  /** The `secret` of the receiver in the configuration of Trellis. */
  secret: string | undefined
}) => (request: Request) => Promise<Response>
/** To be called in a function with `'use cache'`: keeps what it returns until a write changes the response. */
export declare const keepUntilPurged: (response: Response) => void
