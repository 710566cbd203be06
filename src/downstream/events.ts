/** `receiver`: its type, with a number where a service has several of one type. */
export type DownstreamEvent = { readonly service: string; readonly receiver: string } & (
  | { readonly kind: 'purge-sent'; readonly outcome: 'confirmed' | 'failed' }
  /** A write or another change has waited for the receiver: until it confirmed, or in vain. `behind`: it was not waited for. */
  | {
      readonly kind: 'purge-awaited'
      readonly outcome: 'confirmed' | 'late' | 'behind'
      readonly waitedSeconds: number
    }
  | { readonly kind: 'receiver-behind'; readonly reason: string }
  | { readonly kind: 'receiver-caught-up' }
)

/** The state of a receiver. `lagSeconds`: since when something is unconfirmed; 0 when nothing is. */
export type ReceiverStanding = {
  readonly service: string
  readonly receiver: string
  readonly behind: boolean
  readonly lagSeconds: number
}
