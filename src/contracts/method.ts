/** What a service accepts, and the form of the gateway's own answers for it. */
export type ContractName = 'plants' | 'site' | 'openapi' | 'open'

export type Method = 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS'
