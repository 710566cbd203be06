/** `receiver`: the type of the receiver, with a number where a service has several of one type. */
export type DownstreamEvent = { readonly service: string; readonly receiver: string } & (
  | { readonly kind: 'purge-sent'; readonly outcome: 'confirmed' | 'failed' }
  /** A write or another change has waited for the receiver: until it confirmed, or in vain. `behind`: it was not waited for. */
  | {
      readonly kind: 'purge-awaited'
      readonly outcome: 'confirmed' | 'late' | 'behind'
      readonly waitedSeconds: number
    }
  | { readonly kind: 'receiver-behind'; readonly reason: string; readonly address: string | undefined }
  | { readonly kind: 'receiver-caught-up'; readonly address: string | undefined }
  /** Of a removed service: it was sent purges for as long as it may show what it has stored, and is sent no more. */
  | { readonly kind: 'receiver-given-up'; readonly address: string | undefined }
)

/**
 * The state of a receiver, or of one of its instances, which `address` names. `reason`: why it lags. `lagSeconds`: since when
 * a purge is unconfirmed or the receiver cannot be reached; 0 when neither is.
 */
export type ReceiverStatus = {
  readonly service: string
  readonly receiver: string
  readonly address: string | undefined
  readonly isLagging: boolean
  readonly reason: string | undefined
  readonly lagSeconds: number
}
