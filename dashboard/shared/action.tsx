// A button that changes something: it asks first if the change matters, describes the effect, shows that it is working,
// and reports the result.

import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { Button } from "./button.js";
import { Dialog } from "./dialog.js";
import { RefusalNote } from "./refusal.js";
import { showAll } from "./still.js";
import { useToast } from "./toast.js";

export type Confirmation = {
  readonly title: string;
  /** What will happen, and what will not. */
  readonly summary: ReactNode;
  readonly verb: string;
  /** Asks for a note that is stored. */
  readonly note?: string;
  readonly isDangerous?: boolean;
};

export function ActionButton(props: {
  readonly label: ReactNode;
  readonly title?: string;
  readonly act: (note: string | undefined) => Promise<string>;
  readonly confirm?: Confirmation;
  readonly kind?: "main" | "plain" | "quiet" | "danger";
  readonly isSmall?: boolean;
  readonly isDisabled?: boolean;
  readonly onDone?: () => void;
}) {
  const {
    label,
    title,
    act,
    confirm,
    kind = "plain",
    isSmall = false,
    isDisabled = false,
    onDone,
  } = props;
  const [isAsking, setAsking] = useState(false);
  const [note, setNote] = useState("");
  const client = useQueryClient();
  const toast = useToast();
  const action = useMutation({
    mutationFn: () => act(note.trim() === "" ? undefined : note.trim()),
    onSuccess: (said) => {
      toast(said);
      setAsking(false);
      setNote("");
      showAll();
      void client.invalidateQueries();
      onDone?.();
    },
    onError: (error) => {
      if (!confirm) toast(error instanceof Error ? error.message : String(error), "failed");
    },
  });
  return (
    <>
      <Button
        kind={kind}
        isSmall={isSmall}
        title={title}
        disabled={isDisabled || (action.isPending && !confirm)}
        onClick={() => (confirm ? setAsking(true) : action.mutate())}
      >
        {label}
      </Button>
      {isAsking && confirm ? (
        <Dialog
          title={confirm.title}
          onClose={() => {
            setAsking(false);
            action.reset();
          }}
        >
          <form
            className="grid gap-4"
            onSubmit={(event) => {
              event.preventDefault();
              action.mutate();
            }}
          >
            <div className="text-muted">{confirm.summary}</div>
            {confirm.note === undefined ? null : (
              <label className="grid gap-1">
                <span>{confirm.note}</span>
                <input
                  className="field"
                  value={note}
                  maxLength={500}
                  onChange={(event) => setNote(event.target.value)}
                />
              </label>
            )}
            {action.error ? <RefusalNote error={action.error} /> : null}
            <div className="flex justify-end gap-2">
              <Button onClick={() => setAsking(false)}>
                {confirm.verb.startsWith("Cancel") ? "Back" : "Cancel"}
              </Button>
              <Button
                type="submit"
                kind={confirm.isDangerous ? "danger" : "main"}
                disabled={action.isPending}
              >
                {confirm.verb}
              </Button>
            </div>
          </form>
        </Dialog>
      ) : null}
    </>
  );
}
