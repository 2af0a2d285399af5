// The switches for the time zone and the theme.

import { useState } from "react";
import { LOCAL_ZONE, useZones } from "../shared/zone.js";
import { chooseTheme, chosenTheme, type Theme } from "./theme.js";

export function ZoneSwitch() {
  const { choice, choose } = useZones();
  return (
    <Choice
      name="Times"
      value={choice}
      choose={choose}
      options={[
        [
          "local",
          LOCAL_ZONE === "UTC"
            ? "Local"
            : (LOCAL_ZONE.split("/").at(-1)?.replaceAll("_", " ") ?? "Local"),
        ],
        ["utc", "UTC"],
      ]}
    />
  );
}

export function ThemeSwitch() {
  const [theme, setTheme] = useState<Theme>(chosenTheme());
  return (
    <Choice
      name="Light"
      value={theme}
      choose={(next) => {
        chooseTheme(next);
        setTheme(next);
      }}
      options={[
        ["system", "Auto"],
        ["light", "Light"],
        ["dark", "Dark"],
      ]}
    />
  );
}

function Choice<Value extends string>(props: {
  readonly name: string;
  readonly value: Value;
  readonly choose: (value: Value) => void;
  readonly options: readonly (readonly [Value, string])[];
}) {
  const { name, value, choose, options } = props;
  return (
    <fieldset className="flex rounded-md bg-sunken p-0.5">
      <legend className="sr-only">{name}</legend>
      {options.map(([option, word]) => (
        <label
          key={option}
          className={`flex-auto cursor-pointer truncate rounded px-1.5 py-0.5 text-center has-focus-visible:outline-2 has-focus-visible:outline-accent ${value === option ? "bg-surface font-medium shadow-xs" : "text-muted hover:text-ink"}`}
        >
          <input
            type="radio"
            className="sr-only"
            name={name}
            checked={value === option}
            onChange={() => choose(option)}
          />
          {word}
        </label>
      ))}
    </fieldset>
  );
}
