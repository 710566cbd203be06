/** The contract of a service: the requests that it accepts, and the form of the gateway's own responses. */
export type ContractName = 'plants' | 'site' | 'openapi' | 'open'

export type Method = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS'
