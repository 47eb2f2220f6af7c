/** What a message is made of: all of its fields may be left out, and whole numbers need not be `bigint`. */
export type Init<T> = T extends bigint
  ? bigint | number
  : T extends string | number | boolean | null | undefined | Int16Array
    ? T
    : T extends readonly (infer Item)[]
      ? readonly Init<Item>[]
      : T extends { readonly type: infer Name }
        ? string extends Name
          ? Given<T>
          : { readonly type: Name } & Given<Omit<T, "type">>
        : Given<T>;

type Given<T> = { readonly [Field in keyof T]?: Init<T[Field]> | undefined };
