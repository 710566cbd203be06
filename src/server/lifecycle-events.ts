/** What came of reading the configuration anew. */
export type ReloadResult = 'applied' | 'unchanged' | 'invalid' | 'restart-needed' | 'failed'

/** What the process tells of its own life. */
export type LifecycleEvent =
  | {
      readonly kind: 'reloaded'
      readonly outcome: ReloadResult
      /** Seconds since 1970. */
      readonly atSeconds: number
    }
  /** An error that nothing caught: the process drains and ends. */
  | { readonly kind: 'process-fault' }
  | {
      readonly kind: 'certificate-in-force'
      /** Seconds since 1970. */
      readonly notAfterSeconds: number
    }
